"""A request becomes a run: what is refused before a model is loaded, whose settings win, what is said meanwhile."""

import shutil
from dataclasses import replace

import pytest

from explorer.config import Sampling
from explorer.errors import DeviceError, ExplorerError, PromptError, SettingError
from explorer.loading import ModelStore
from explorer.prediction import PROFILE_FILE, Profile, Shape, profile_text
from explorer.run_setup import check_request, prepare_run
from explorer.runner_events import Notice, RunRequest, drain
from explorer.target_presets import TargetPreset
from tests.support.goldens import FOLDER

BASE, EAGLE = str(FOLDER / "base_a"), str(FOLDER / "eagle_bias")


def request(**changes):
    return RunRequest(**({"method": "eagle2", "prompt": "Hi", "target": BASE, "drafter": EAGLE} | changes))


def prepare(wanted, store):
    events = []
    run = drain(prepare_run(wanted, check_request(wanted), store), events.append)
    return run, [event.text for event in events if isinstance(event, Notice)]


@pytest.fixture(scope="module")
def store():
    return ModelStore()


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"method": "magic"}, SettingError, "unknown method 'magic'"),
        ({"prompt": ""}, PromptError, "empty"),
        ({"prompt": None}, PromptError, "exactly one"),
        ({"prompt_ids": (1,)}, PromptError, "not prompt and prompt_ids"),
        ({"prompt": None, "prompt_ids": (1,), "system": "x"}, PromptError, "leave the system prompt out"),
        ({"max_new_tokens": 0}, SettingError, "at least 1"),
        ({"method": "lookahead", "is_adaptive": True}, SettingError, "adaptive runs are for draft_model, "),
        ({"max_new_tokens": -3}, SettingError, "at least 1"),
        ({"max_new_tokens": 2.5}, SettingError, "whole number"),
        ({"sampling": Sampling(0.7, acceptance="typical")}, SettingError, "eagle2 has no typical acceptance"),
        ({"dtype": "float8"}, DeviceError, "float8"),
        ({"device": "toaster"}, DeviceError, "toaster"),
    ],
)
def test_refused_before_a_model_is_loaded(changes, error, says):
    with pytest.raises(error, match=says):
        check_request(request(**changes))


def test_settings_of_the_request_win_over_the_preset_and_the_preset_over_the_method(store, monkeypatch):
    small = {"small": {"eagle2": {"total_tokens": 16, "depth": 3}}}
    preset = TargetPreset("tiny", "Tiny", BASE, {"eagle2": EAGLE}, small, {"cpu": "small"})
    monkeypatch.setattr(store, "preset", lambda _: preset)
    run, notices = prepare(request(settings={"depth": "2"}, drafter=None), store)
    assert run.settings == {"total_tokens": 16, "depth": 2, "top_k": 10} and notices == []
    run, _ = prepare(request(settings={"preset": "paper"}), store)
    assert run.settings == {"total_tokens": 60, "depth": 5, "top_k": 10}
    assert prepare(request(preset="paper"), store)[0].settings == run.settings
    with pytest.raises(SettingError, match="'huge'.*small, paper"):
        prepare(request(preset="huge"), store)


def test_auto_is_resolved_before_the_method_is_made(store, monkeypatch, tmp_path):
    shutil.copytree(EAGLE, tmp_path / "eagle")
    profile = Profile("eagle2", "text", 9, [Shape({"depth": d, "top_k": 2}, [1.0, 1.2, 100.0**d]) for d in (1, 2)])
    (tmp_path / "eagle" / PROFILE_FILE).write_text(profile_text(profile))
    small = {"small": {"eagle2": {"total_tokens": 16, "depth": 3}}}
    preset = TargetPreset("tiny", "Tiny", BASE, {"eagle2": str(tmp_path / "eagle")}, small, {"cpu": "small"})
    monkeypatch.setattr(store, "preset", lambda _: preset)
    run, notices = prepare(request(settings={"total_tokens": "auto"}, drafter=None), store)
    assert run.settings == {"total_tokens": 3, "depth": 2, "top_k": 2}  # the preset's depth does not bind it
    assert "auto: 3 rows, depth 2, top_k 2" in notices[0] and "to break even" in notices[0]
    run, _ = prepare(request(settings={"total_tokens": "auto", "depth": 1}, drafter=None), store)
    assert run.settings["depth"] == 1
    with pytest.raises(SettingError, match="acceptance profile"):
        prepare(request(settings={"total_tokens": "auto"}), store)


def test_clamped_settings_are_said(store):
    _, notices = prepare(request(settings={"depth": "99", "total_tokens": "-4"}), store)
    assert [notice.split()[0] for notice in notices] == ["depth", "total_tokens"]
    _, notices = prepare(request(settings={"depth": 0, "top_k": 3}), store)
    assert len(notices) == 1 and "4 rows" in notices[0]  # the method's own: such a tree has no more nodes


def test_a_drafter_trained_on_less_than_the_run_may_reach_is_said(store):
    assert prepare(request(max_new_tokens=400), store)[1] == []
    run, _ = prepare(request(), store)
    run.models.drafter("eagle2", EAGLE).module.config = replace(run.method.drafter.config, max_position_embeddings=256)
    try:
        _, notices = prepare(request(max_new_tokens=400), store)
        assert len(notices) == 1 and "trained on 256 tokens" in notices[0]
        assert prepare(request(max_new_tokens=20), store)[1] == []
        _, notices = prepare(request(max_new_tokens=10**9), store)
        assert f"reach {run.method.target.context_limit}:" in notices[0]
    finally:
        run.method.drafter.config = replace(run.method.drafter.config, max_position_embeddings=1024)


def test_a_drafter_of_another_target_is_said_in_every_run(store):
    wanted = request(drafter=str(FOLDER / "eagle_nobias"))
    for _ in range(2):
        _, notices = prepare(wanted, store)
        assert len(notices) == 1 and "does not seem to belong to this target" in notices[0]
    assert prepare(request(), store)[1] == []


def test_a_method_without_a_drafter(store):
    run, _ = prepare(request(method="autoregressive", drafter=None), store)
    assert run.drafter is None and run.settings == {}


def test_prompts_of_every_kind(store):
    turns = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"})
    run, _ = prepare(request(prompt=None, messages=turns, system="s"), store)
    assert [word for word in "sabc" if f"\n{word}<|im_end|>" in run.prompt.rendered] == list("sabc")
    run, _ = prepare(request(prompt=None, prompt_ids=(5, 6, 7)), store)
    assert run.prompt.token_ids == [5, 6, 7]
    with pytest.raises(PromptError, match="0 to 319"):
        prepare(request(prompt=None, prompt_ids=(320,)), store)


def test_unknown_settings_and_wrong_drafters(store):
    for changes in ({"settings": {"dept": 1}}, {"drafter": str(FOLDER / "medusa_a")}, {"drafter": "/nowhere/at/all"}):
        with pytest.raises(ExplorerError):
            prepare(request(**changes), store)


def test_passes_that_could_not_be_captured_are_told(store, monkeypatch):
    run, notices = prepare(request(), store)
    assert not [notice for notice in notices if "launched" in notice]
    monkeypatch.setattr(run.models.target, "why_eager", "capturing a pass of 8 rows failed: no")
    _, notices = prepare(request(), store)
    assert "passes are launched one by one: capturing a pass of 8 rows failed: no" in notices
