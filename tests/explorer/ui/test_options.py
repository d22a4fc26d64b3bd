"""The operator's choices: which targets and drafters visitors may pick."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.errors import SettingError
from explorer.service.served_runner import RunLimits
from explorer.target_presets import TargetPreset, load_targets
from explorer.ui.options import AppOptions, pick_drafters, pick_targets
from tests.support.medusa2_files import write_medusa2
from tests.support.page import LARGE, TINY

KNOWN = {"tiny": TINY, "large": LARGE}
BOTH = (TINY, LARGE)


def test_without_a_list_the_default_target_alone_is_offered() -> None:
    assert [target.name for target in pick_targets(None)] == ["smollm2"]


def test_targets_are_offered_in_the_order_given_and_once() -> None:
    assert pick_targets("large, tiny,large", KNOWN) == (LARGE, TINY)


@pytest.mark.parametrize("names", ["nothing", "tiny,nothing", ",", "/etc/passwd", "/nowhere/at/all", "a/b/c", "\0/x"])
def test_unknown_targets_are_refused_with_the_known_ones(names: str) -> None:
    with pytest.raises(SettingError, match="known presets: tiny, large"):
        pick_targets(names, KNOWN)


def test_the_operator_may_name_directories_and_hub_ids(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    own, hub = pick_targets(f"{folder},someone/model", KNOWN)
    assert (own.name, own.label, own.source) == ("my-llama", "my-llama", str(folder))
    assert own.method_settings("eagle2", "cpu") == {}
    assert hub == TargetPreset("someone/model", "someone/model", "someone/model")


def test_two_targets_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a" / "tiny").mkdir(parents=True)
    with pytest.raises(SettingError, match="two targets are called tiny"):
        pick_targets(f"tiny,{tmp_path / 'a' / 'tiny'}", KNOWN)


def test_a_visitor_gets_only_what_is_offered() -> None:
    options = AppOptions((TINY,))
    assert options.target("tiny") is TINY
    with pytest.raises(SettingError, match="allowed: tiny"):
        options.target("large")


def test_the_presets_own_drafter_is_the_only_one_unless_the_operator_adds_others() -> None:
    smollm2 = load_targets()["smollm2"]
    options = AppOptions((smollm2,))
    assert [choice.name for choice in options.drafters(smollm2, "eagle2")] == ["smollm2-135m-instruct/eagle"]
    assert options.drafters(smollm2, "autoregressive") == ()
    assert options.drafter(smollm2, "autoregressive", None) is None


def test_added_drafters_are_named_without_their_place(tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place / "eagle").mkdir(parents=True)
    specs = [f"tiny:eagle2={tmp_path / place / 'eagle'}" for place in ("one", "two")]
    targets, more = pick_drafters([*specs, "large:eagle2=someone/better"], BOTH)
    assert targets == BOTH
    options = AppOptions(targets, more)
    names = [choice.name for choice in options.drafters(TINY, "eagle2")]
    assert names == ["/nowhere/eagle", "eagle", "eagle (2)"]  # a preset's own that is no directory is a hub id to us
    assert str(tmp_path) not in "".join(names[1:])
    assert options.drafter(TINY, "eagle2", "eagle (2)").source == str(tmp_path / "two" / "eagle")  # type: ignore[union-attr]
    assert options.drafter(TINY, "eagle2", None).source == TINY.drafters["eagle2"]  # type: ignore[union-attr]
    assert [choice.name for choice in options.drafters(LARGE, "eagle2")] == ["someone/eagle", "someone/better"]


def test_a_method_without_a_drafter_gets_one_on_the_first_target() -> None:
    targets, more = pick_drafters(["medusa=someone/heads"], BOTH)
    assert targets[0].drafters == TINY.drafters | {"medusa": "someone/heads"}
    assert targets[1] == LARGE
    assert [choice.source for choice in AppOptions(targets, more).drafters(targets[0], "medusa")] == ["someone/heads"]


@pytest.mark.parametrize("name", ["someone/better", "/etc/passwd", "", ["eagle"], 3])
def test_a_visitor_names_no_drafter_of_his_own(name: object) -> None:
    with pytest.raises(SettingError, match="does not offer the drafter .* for eagle2 on Tiny target; allowed: "):
        AppOptions(BOTH).drafter(TINY, "eagle2", name)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("eagle2", "is not .TARGET:.METHOD=DIR_OR_ID"),
        ("eagle2=", "is not .TARGET:.METHOD=DIR_OR_ID"),
        ("huge:eagle2=a/b", "one of the targets tiny, large"),
        ("magic=a/b", "'magic' uses no drafter; allowed: .*medusa, eagle1, eagle2"),
        ("autoregressive=a/b", "'autoregressive' uses no drafter"),
        ("eagle2=/nowhere/at/all", "neither a directory here nor a hub id"),
    ],
)
def test_drafters_that_cannot_be_are_refused(spec: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        pick_drafters([spec], BOTH)


def test_what_a_run_may_ask_for_is_the_operators() -> None:
    options = AppOptions((), max_new_tokens=5, max_prompt_tokens=7, max_run_seconds=2)
    assert options.limits == RunLimits(5, 7, 2)


def test_a_drafter_that_adapts_its_target_says_so_in_the_list(tmp_path: Path) -> None:
    source = write_medusa2(tmp_path)
    targets, more = pick_drafters([f"medusa={source}"], BOTH)
    choice = AppOptions(targets, more).drafter(targets[0], "medusa", None)
    assert choice is not None
    assert choice.name == "medusa2"
    assert choice.label == "medusa2, adapts the target: first choice as the original's 87.5 %, mean KL 0.25"
    (source / "config.json").write_text("{}")
    assert choice.label == "medusa2, adapts the target"
    (source / "target_adapter.safetensors").unlink()
    assert choice.label == choice.name
