"""Models are loaded once, kept, and make room; what cannot be loaded is said in a sentence."""

from types import SimpleNamespace

import pytest
import torch

from explorer import config, loading
from explorer.checkpoints import smollm2
from explorer.config import repo_path
from explorer.errors import CheckpointError, DeviceError, FetchError, SettingError
from explorer.loading import LoadedModels, ModelStore, adapter_source, check_placement, drafter_source, with_one_target
from explorer.runner_events import RunRequest, Status, drain
from explorer.target_presets import TargetPreset
from tests.support.checkpoints import copy_golden, edit_json
from tests.support.eagle3_files import write_eagle3
from tests.support.goldens import FOLDER
from tests.support.medusa2_files import write_medusa2


def request(method="eagle2", **changes):
    return RunRequest(method, prompt="x", **({"target": str(FOLDER / "base_a")} | changes))


def load(store, wanted):
    statuses = []
    return drain(store.models(wanted), statuses.append), statuses


def test_a_target_is_loaded_once_and_the_oldest_makes_room(monkeypatch):
    monkeypatch.setattr(loading, "MAX_TARGETS", 2)
    store = ModelStore()
    first, statuses = load(store, request())
    assert isinstance(first, LoadedModels) and statuses == [Status("loading the target")]
    again, statuses = load(store, request(method="medusa"))
    assert again is first and statuses == []
    other, _ = load(store, request(dtype="float32"))
    assert other is not first and load(store, request())[0] is first
    load(store, request(target=str(FOLDER / "base_b")))  # the float32 one was used longest ago
    assert load(store, request())[0] is first and load(store, request(dtype="float32"))[0] is not other


def test_a_drafter_is_loaded_once():
    models, _ = load(ModelStore(), request())
    source = str(FOLDER / "eagle_bias")
    assert models.drafter("eagle2", source) is models.drafter("eagle2", source)
    with pytest.raises(CheckpointError):
        models.drafter("eagle2", str(FOLDER / "medusa_a"))


def test_methods_with_one_loader_share_a_drafter_and_its_one_check(monkeypatch):
    models, _ = load(ModelStore(), request())
    checked = []
    monkeypatch.setattr(loading, "find_doubt", lambda module, *_: checked.append(module) or "it is odd")
    source = str(FOLDER / "eagle_bias")
    loaded = [models.drafter(method, source) for method in ("eagle2", "eagle1", "eagle2")]
    assert loaded[0] is loaded[1] is loaded[2] and checked == [loaded[0].module]
    assert loaded[0].doubt == "it is odd"


def test_a_drafter_is_compared_over_the_layers_that_it_reads(tmp_path):
    models, _ = load(ModelStore(), request())
    three = str(write_eagle3(tmp_path, layers=[0, 1, 2]))
    loaded = [models.drafter("eagle3", three), models.drafter("eagle2", str(FOLDER / "eagle_bias"))]
    assert "does not seem to belong" in loaded[0].doubt and loaded[1].doubt is None, "the first one is made of noise"
    assert {key: reading.features.shape[1] for key, reading in models.readings.items()} == {
        ("read_text", (0, 1, 2)): 192,
        ("read_answer", (0, 1, 2)): 192,  # only the doubted one is asked twice
        ("read_text", ()): 64,
    }


def test_a_preset_lends_a_chat_template_to_a_tokenizer_that_has_none(tmp_path, monkeypatch):
    bare = copy_golden("base_a", tmp_path)
    edit_json(bare / "tokenizer_config.json", chat_template=None)
    store = ModelStore()
    for folder, expected in ((bare, "T"), (FOLDER / "base_a", "im_start")):
        preset = TargetPreset("tiny", "Tiny", str(folder), chat_template="T")
        monkeypatch.setattr(store, "preset", lambda _, preset=preset: preset)
        assert expected in load(store, request())[0].target.tokenizer.chat_template


@pytest.mark.parametrize("method", loading.METHODS)
def test_every_method_that_needs_a_drafter_has_a_loader(method):
    assert (method in loading.LOADERS) == loading.METHODS[method].needs_drafter


PRESET = TargetPreset("tiny", "Tiny", "tiny", drafters={"eagle2": "tests/goldens/eagle_bias", "medusa": "owner/heads"})


def test_where_a_drafter_comes_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert drafter_source(request(), PRESET) == str(repo_path("tests", "goldens", "eagle_bias"))
    assert drafter_source(request("medusa"), PRESET) == "owner/heads"
    assert drafter_source(request(drafter=str(tmp_path)), PRESET) == str(tmp_path)
    assert drafter_source(request("autoregressive"), PRESET) is None


@pytest.mark.parametrize(
    ("wanted", "preset", "says"),
    [
        (request("autoregressive", drafter="x"), PRESET, "uses no drafter"),
        (request("medusa"), TargetPreset("t", "t", "t"), "--drafter DIR_OR_ID, or a preset as target: smollm2, "),
        (request("eagle3"), TargetPreset("smollm2", "t", "t"), "--drafter DIR_OR_ID$"),
        (
            request("magic"),
            PRESET,
            "autoregressive, prompt_lookup, jacobi, lookahead, draft_model, medusa, eagle1, eagle2, eagle3",
        ),
    ],
)
def test_drafters_that_do_not_go_together(wanted, preset, says):
    with pytest.raises(SettingError, match=says):
        drafter_source(wanted, preset)


@pytest.mark.parametrize("changes", [{"dtype": "float8"}, {"backend": "magic"}, {"cache": "pages"}])
def test_unknown_placements(changes):
    with pytest.raises(DeviceError, match=next(iter(changes))):
        check_placement(request(**changes))


def test_an_absent_default_target_is_fetched_before_it_is_loaded(monkeypatch):
    def fetch(_report):
        raise FetchError("there is no network")

    monkeypatch.setattr(smollm2, "is_fetched", lambda: False)
    monkeypatch.setattr(smollm2, "fetch", fetch)
    with pytest.raises(FetchError, match="no network"):
        load(ModelStore(), request(target="smollm2"))


def test_the_names_that_need_no_torch_are_the_methods():
    assert tuple(loading.METHODS) == config.METHOD_NAMES


def base_b(method="medusa", **changes):
    return request(method, **({"target": str(FOLDER / "base_b")} | changes))


def test_an_adapted_target_is_kept_beside_the_original_and_neither_knows_of_the_other(tmp_path):
    store, source = ModelStore(), str(write_medusa2(tmp_path))
    original, _ = load(store, base_b("eagle2"))
    original.target.start(4)
    before = original.target.prefill([5, 9, 17]).logits
    adapted, statuses = load(store, base_b(drafter=source))
    assert statuses == [Status("loading the target")] and adapted is not original
    assert (adapted.target.name, original.target.name) == ("base_b adapted by medusa2", "base_b")
    assert adapted.adapter.name == "medusa2" and original.adapter is None
    original.target.start(4), adapted.target.start(4)
    assert torch.equal(original.target.prefill([5, 9, 17]).logits, before)
    assert not torch.equal(adapted.target.prefill([5, 9, 17]).logits, before)
    assert load(store, base_b("lookahead"))[0] is original
    assert load(store, base_b("autoregressive", adapter=source))[0] is adapted
    assert load(store, base_b(drafter=str(FOLDER / "medusa_b")))[0] is original


def test_requests_that_are_compared_have_one_target(tmp_path):
    preset, source = TargetPreset("t", "t", "t", drafters={"eagle2": "owner/eagle"}), str(write_medusa2(tmp_path))
    plain = [base_b("autoregressive"), base_b("eagle2"), base_b(drafter=str(FOLDER / "medusa_b"))]
    assert with_one_target(plain, preset) == plain
    shared = with_one_target([*plain, base_b(drafter=source)], preset)
    assert [each.adapter for each in shared] == [source] * 4
    assert {adapter_source(each, preset) for each in shared} == {source}
    other = str(write_medusa2(tmp_path, "other"))
    with pytest.raises(SettingError, match="measure them apart"):
        with_one_target([base_b(drafter=source), base_b(drafter=other)], preset)
    with pytest.raises(SettingError, match="one run has one target"):
        adapter_source(base_b(drafter=source, adapter=other), preset)


@pytest.mark.parametrize(("changes", "message"), [
    ({"execution": "fast"}, "unknown execution 'fast': choose auto, eager, graphed"),
    ({"execution": "graphed", "device": "cpu"}, "needs an NVIDIA GPU: choose auto or eager"),
])  # fmt: skip
def test_executions_that_are_not_to_be_had(changes, message):
    with pytest.raises(DeviceError, match=message):
        check_placement(request(**changes))


@pytest.mark.parametrize(("execution", "why", "expected"), [
    ("auto", None, "graphed"), ("eager", None, "eager"), ("auto", "it failed", "graphed"), ("graphed", None, "graphed")
])  # fmt: skip
def test_a_gpu_of_ones_own_gets_captured_passes(monkeypatch, execution, why, expected):
    """With stand-ins for the GPU and both targets; what fails under auto is told by the target itself."""
    monkeypatch.setattr(loading, "Target", lambda *_parts: SimpleNamespace(kind="eager"))
    monkeypatch.setattr(loading, "GraphedTarget", lambda *_parts: SimpleNamespace(kind="graphed", why_eager=why))
    loaded = SimpleNamespace(
        model=SimpleNamespace(device=torch.device("cuda")), tokenizer=None, name="x", stop_ids=(), backend="naive"
    )
    assert loading._make_target(loaded, request(execution=execution)).kind == expected


def test_graphs_that_were_asked_for_and_fail_are_an_error(monkeypatch):
    monkeypatch.setattr(loading, "GraphedTarget", lambda *_parts: SimpleNamespace(why_eager="capturing failed"))
    loaded = SimpleNamespace(
        model=SimpleNamespace(device=torch.device("cuda")), tokenizer=None, name="x", stop_ids=(), backend="naive"
    )
    with pytest.raises(DeviceError, match="capturing failed; choose auto or eager execution"):
        loading._make_target(loaded, request(execution="graphed"))


def test_on_a_cpu_passes_are_ordinary_ones():
    models, _ = load(ModelStore(), request())
    assert models.target.execution == "eager" and models.target.why_eager is None
