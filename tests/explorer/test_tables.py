"""Numbers in tables."""

from __future__ import annotations

from explorer.tables import NOTHING, number, told


def test_a_figure_that_is_not_there_is_a_dash() -> None:
    assert (number(None, 2), number(1.256, 2), number(3, 0)) == (NOTHING, "1.26", "3")


def test_lists_are_told_without_their_marks() -> None:
    assert (told([]), told(["a=1", "b=2"]), told(3), told(None)) == ("none", "a=1, b=2", "3", "None")
