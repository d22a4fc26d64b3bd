"""Targets: whoever saved them, with every stop id, every tensor accounted for, and one sentence when it cannot be."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.checkpoints import smollm2, target
from explorer.checkpoints.target import find_stop_ids, load_target
from explorer.errors import CheckpointError, DeviceError, FetchError
from tests.support.checkpoints import copy_golden, edit_json, edit_tensors, golden_dir

WEIGHTS = "model.safetensors"


@pytest.mark.parametrize(
    ("name", "stop_ids", "ids"),
    [
        ("base_a", {4, 2}, [1, 263, 80, 80, 83]),
        ("base_b", {319, 317}, [258, 75, 75, 78]),
        ("medusa_c", {4, 2}, [1, 263, 80, 80, 83]),
    ],
)
def test_golden_targets_load(name: str, stop_ids: set[int], ids: list[int]) -> None:
    loaded = load_target(str(golden_dir(name)), device="cpu")
    assert (loaded.name, loaded.stop_ids, loaded.backend) == (name, stop_ids, "naive")
    assert loaded.tokenizer("hello").input_ids == ids
    assert "assistant" in loaded.tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], tokenize=False, add_generation_prompt=True
    )
    assert loaded.model.config._attn_implementation == "tree_attention_naive"
    assert loaded.model.dtype == torch.float32
    assert not loaded.model.training
    assert not any("medusa" in key for key, _ in loaded.model.named_parameters())


def test_tied_embeddings_stay_tied() -> None:
    model = load_target(str(golden_dir("base_b")), device="cpu").model
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_dtype_is_taken() -> None:
    assert load_target(str(golden_dir("base_a")), device="cpu", dtype="bfloat16").model.dtype == torch.bfloat16


def test_loading_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    load_target(str(golden_dir("medusa_c")), device="cpu")
    assert capfd.readouterr() == ("", "")


def tokenizer_with(template: str | None) -> Any:
    tokenizer = load_target(str(golden_dir("base_a")), device="cpu").tokenizer
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize(
    ("template", "stop_ids"),
    [
        ("{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}", {2, 4}),
        ("{% for m in messages %}{{ m['content'] }}\n{% endfor %}", {2}),
        ("{% for m in messages %}{{ m['content'] }}{% endfor %}", {2}),
        ("{{ raise_exception('no') }}", {2}),
        ("{% broken", {2}),
        ("no content at all", {2}),
        (None, {2}),
    ],
)
def test_the_templates_end_of_turn_is_a_stop(template: str | None, stop_ids: set[int]) -> None:
    model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=None))
    assert find_stop_ids(model, tokenizer_with(template)) == stop_ids


def refused(source: Path | str) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_target(str(source), device="cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_tensor_that_does_not_fit_is_listed(tmp_path: Path) -> None:
    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors["model.norm.weight"]
        tensors["model.layers.0.mlp.up_proj.weight"] = torch.ones(128, 63)
        tensors["model.extra.weight"] = torch.ones(2)
        tensors["medusa_head.0.0.linear.bias"] = torch.ones(64)
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)

    folder = copy_golden("base_a", tmp_path)
    edit_tensors(folder, WEIGHTS, WEIGHTS, damage)
    message = refused(folder)
    assert "missing: model.norm.weight" in message
    assert "unexpected: model.extra.weight" in message
    assert "model.layers.0.mlp.up_proj.weight has shape [128, 63], expected [128, 64]" in message
    assert "medusa" not in message
    assert "inv_freq" not in message


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "config.json").write_text("{"),
        lambda folder: (folder / "config.json").write_text("[]"),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: edit_json(folder / "config.json", model_type="no_such_model"),
        lambda folder: edit_json(folder / "config.json", model_type="bert"),
        lambda folder: edit_json(folder / "config.json", hidden_size="64"),
        lambda folder: edit_json(folder / "config.json", hidden_size=4096, intermediate_size=10**7),
        lambda folder: edit_json(folder / "config.json", num_hidden_layers=10**8),
        lambda folder: edit_json(folder / "config.json", vocab_size=-1),
        lambda folder: edit_json(folder / "config.json", rms_norm_eps="small"),
        lambda folder: edit_json(folder / "config.json", rope_scaling={"rope_type": "no_such_type"}),
        lambda folder: edit_json(folder / "config.json", hidden_act="no_such_function"),
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:-1000]),
        lambda folder: (folder / WEIGHTS).write_bytes(b"\xff" * 100),
        lambda folder: (folder / WEIGHTS).unlink(),
        lambda folder: ((folder / WEIGHTS).unlink(), (folder / WEIGHTS).symlink_to(folder / WEIGHTS)),
        lambda folder: (folder / "tokenizer.json").write_text("{"),
        lambda folder: (folder / "tokenizer.json").write_text('{"version": "1.0"}'),
        lambda folder: [(folder / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json")],
        lambda folder: (folder / "tokenizer_config.json").write_text("[1"),
        lambda folder: (folder / "generation_config.json").write_text("{"),
    ],
    ids=(
        "broken config|config is a list|no config|unknown model|no causal model|text for a number|huge layers"
        "|many layers|negative vocabulary|text for eps|unknown rope|unknown activation|cut weights|garbage weights"
        "|no weights|weights loop|broken tokenizer|odd tokenizer|no tokenizer|broken tokenizer config"
        "|broken generation config"
    ).split("|"),
)
def test_broken_and_hostile_folders(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    folder = copy_golden("base_a", tmp_path)
    damage(folder)
    assert "base_a" in refused(folder)


def test_a_tokenizer_of_sentencepiece_alone_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "find_spec", lambda _: None)
    folder = copy_golden("base_a", tmp_path)
    (folder / "tokenizer.model").write_bytes(b"pieces")
    load_target(str(folder), device="cpu")  # tokenizer.json is there too, and enough
    (folder / "tokenizer.json").unlink()
    assert "pip install sentencepiece protobuf" in refused(folder)


def test_a_drafter_is_no_target() -> None:
    assert "medusa_a" in refused(golden_dir("medusa_a"))
    assert "eagle_bias" in refused(golden_dir("eagle_bias"))


def test_what_is_nowhere() -> None:
    assert "does not exist" in refused("/no/such/folder")
    assert "check the spelling and the network" in refused("nobody/nothing")


def test_the_default_target_must_be_fetched_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFT_TREE_CACHE", str(tmp_path))
    with pytest.raises(FetchError, match="python -m explorer fetch"):
        load_target("smollm2", device="cpu")


def test_backends_that_are_not_here() -> None:
    with pytest.raises(DeviceError, match="backend"):
        load_target(str(golden_dir("base_a")), device="cpu", backend="warp")
    with pytest.raises(DeviceError, match="needs an NVIDIA GPU"):
        load_target(str(golden_dir("base_a")), device="cpu", backend="triton")


@pytest.mark.default_target
def test_the_default_target_loads_in_under_four_seconds() -> None:
    load_target(str(golden_dir("base_a")), device="cpu")  # imports apart
    times = []
    for _ in range(3):
        start = time.perf_counter()
        loaded = load_target("smollm2", device="cpu")
        times.append(time.perf_counter() - start)
    assert loaded.name == smollm2.LABEL
    assert loaded.stop_ids == {0, 2}
    assert min(times) < 4
