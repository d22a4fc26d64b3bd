"""Free JSON is read by its shape alone: anything else is None, never an error."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.panels.extra import count, ranked_lists, token_lists, tokens

WRONG = [
    None,
    "x",
    -1,
    1.5,
    True,
    {},
    {"a": 1},
    [[]],
    [None],
    ["1"],
    [1.0],
    [True],
    [-1],
    [[1, "x"]],
    [[[1]]],
    [1, [2]],
]


def test_the_right_shapes_are_read() -> None:
    extra = {"n": 7, "flat": [1, 2], "nested": [[1], [], [2, 3]], "heads": [[[5, 0.5], (6, 1)], []]}
    assert count(extra, "n") == 7
    assert tokens(extra, "flat") == [1, 2]
    assert token_lists(extra, "nested") == [[1], [], [2, 3]]
    assert ranked_lists(extra, "heads") == [[(5, 0.5), (6, 1.0)], []]
    assert tokens({"flat": []}, "flat") == []


@pytest.mark.parametrize("read", [count, tokens, token_lists, ranked_lists])
def test_what_is_absent_is_none(read: Any) -> None:
    assert read({}, "name") is None


@pytest.mark.parametrize("raw", WRONG)
def test_other_shapes_are_none(raw: Any) -> None:
    extra = {"name": raw}
    assert count(extra, "name") is None
    assert tokens(extra, "name") is None
    if raw != [[]]:
        assert token_lists(extra, "name") is None
        assert ranked_lists(extra, "name") is None


@pytest.mark.parametrize("item", [[1], [1, 2, 3], ["a", 0.5], [1, "x"], [1, None], [1.5, 0.5], [1, True], 3])
def test_a_ranked_entry_is_a_token_and_a_number(item: Any) -> None:
    assert ranked_lists({"heads": [[item]]}, "heads") is None
