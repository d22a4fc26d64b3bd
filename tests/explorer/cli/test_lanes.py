"""Lanes: labels, settings for all or for one, acceptance rules and leave to rest."""

from __future__ import annotations

import pytest

from explorer.cli.lanes import drafters_of, method_of, read_lanes, resting_lanes, samplings_of, settings_of
from explorer.config import Sampling
from explorer.errors import SettingError


def test_plain_decoding_is_always_a_lane_and_no_lane_comes_twice() -> None:
    assert read_lanes("medusa, eagle2,medusa", {}) == ["autoregressive", "medusa", "eagle2"]
    assert read_lanes("generate,autoregressive", {}) == ["generate", "autoregressive"]


def test_a_label_makes_one_more_lane_of_a_method() -> None:
    lanes = read_lanes("eagle2,eagle2:paper", {"eagle2:paper.preset": "paper"})
    assert lanes == ["autoregressive", "eagle2", "eagle2:paper"]
    assert list(map(method_of, lanes)) == ["autoregressive", "eagle2", "eagle2"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("magic", "unknown magic; allowed: autoregressive"),
        ("magic:x", "unknown magic:x; allowed"),
        ("autoregressive:x", "autoregressive has no settings"),
        ("generate:x", "generate has no settings"),
        ("eagle2:", "a label is 1 to 24"),
        ("eagle2:a b", "a label is 1 to 24"),
        ("eagle2:x", "add --set eagle2:x.NAME=VALUE"),
    ],
)
def test_a_lane_that_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        read_lanes(text, {"eagle2:.depth": "1", "eagle2:a b.depth": "1"})


def test_drafters_go_to_the_lanes_that_need_one() -> None:
    lanes = ["autoregressive", "medusa", "eagle2", "eagle2:paper", "jacobi"]
    assert drafters_of(lanes, []) == {}
    assert drafters_of(lanes, ["a=b/c"]) == dict.fromkeys(["medusa", "eagle2", "eagle2:paper"], "a=b/c")
    found = drafters_of(lanes, ["all", "eagle2=mine"])
    assert found == {"medusa": "all", "eagle2": "mine", "eagle2:paper": "mine"}
    assert drafters_of(lanes, ["medusa=heads"]) == {"medusa": "heads"}, "the others keep the preset's"


@pytest.mark.parametrize(
    ("lanes", "specs", "says"),
    [
        (["jacobi", "eagle2"], ["jacobi=x"], "jacobi takes no drafter here; allowed: eagle2"),
        (["jacobi", "eagle2"], ["medusa=x"], "medusa takes no drafter here; allowed: eagle2"),
        (["eagle2"], ["x", "y"], "two are given for all methods"),
        (["eagle2"], ["eagle2=x", "eagle2=y"], "two are given for eagle2"),
        (["jacobi"], ["x"], "none of jacobi uses one"),
    ],
)
def test_drafters_for_nobody_are_refused(lanes: list[str], specs: list[str], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        drafters_of(lanes, specs)


def test_a_setting_goes_to_the_lanes_that_have_it() -> None:
    assigned = {"total_tokens": "8", "eagle2.depth": "2", "preset": "paper"}
    assert settings_of("eagle2", assigned) == {"total_tokens": "8", "depth": "2", "preset": "paper"}
    assert settings_of("medusa", assigned) == {"total_tokens": "8", "preset": "paper"}
    assert settings_of("autoregressive", assigned) == {"preset": "paper"}
    with pytest.raises(SettingError, match="eagle2.depth"):
        settings_of("eagle2", {"depht": "2"})


def test_a_labelled_lane_takes_what_is_for_all_and_its_own() -> None:
    lanes = ["eagle2", "eagle2:x"]
    assigned = {"eagle2:x.depth": "2", "depth": "5", "eagle2.total_tokens": "8", "eagle2:x.preset": "paper"}
    assert settings_of("eagle2:x", assigned, lanes) == {"depth": "2", "preset": "paper"}
    assert settings_of("eagle2", assigned, lanes) == {"depth": "5", "total_tokens": "8"}
    for name in ("eagle2:x.magic", "eagle2:y.depth", "generate.depth"):
        with pytest.raises(SettingError, match="no method has it"):
            settings_of("eagle2", {name: "1"}, [*lanes, "generate"])


def test_an_acceptance_rule_is_for_the_methods_that_have_it() -> None:
    typical = Sampling(0.7, acceptance="typical")
    found = samplings_of(["autoregressive", "medusa", "medusa:x"], typical)
    assert found == {"autoregressive": Sampling(0.7), "medusa": typical, "medusa:x": typical}
    with pytest.raises(SettingError, match="none of eagle2 has typical acceptance"):
        samplings_of(["eagle2"], typical)


def test_methods_without_a_drafter_do_not_rest() -> None:
    assert resting_lanes(["lookahead", "eagle2", "eagle2:x"]) == ["eagle2", "eagle2:x"]
    with pytest.raises(SettingError, match="none of lookahead can rest; it is for draft_model, medusa"):
        resting_lanes(["lookahead"])
