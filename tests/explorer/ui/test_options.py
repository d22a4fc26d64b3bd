"""The operator's choices: which targets visitors may pick."""

from __future__ import annotations

import pytest

from explorer.errors import SettingError
from explorer.ui.options import AppOptions, pick_targets
from tests.support.page import LARGE, TINY

KNOWN = {"tiny": TINY, "large": LARGE}


def test_without_a_list_the_default_target_alone_is_offered() -> None:
    assert [target.name for target in pick_targets(None)] == ["smollm2"]


def test_targets_are_offered_in_the_order_given_and_once() -> None:
    assert pick_targets("large, tiny,large", KNOWN) == (LARGE, TINY)


@pytest.mark.parametrize("names", ["nothing", "tiny,nothing", ",", "/etc/passwd"])
def test_unknown_targets_are_refused_with_the_known_ones(names: str) -> None:
    with pytest.raises(SettingError, match="known presets: tiny, large"):
        pick_targets(names, KNOWN)


def test_a_visitor_gets_only_what_is_offered() -> None:
    options = AppOptions((TINY,))
    assert options.target("tiny") is TINY
    with pytest.raises(SettingError, match="allowed: tiny"):
        options.target("large")
