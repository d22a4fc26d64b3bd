"""Numbers in tables."""

from __future__ import annotations

from explorer.tables import NOTHING, number


def test_a_figure_that_is_not_there_is_a_dash() -> None:
    assert (number(None, 2), number(1.256, 2), number(3, 0)) == (NOTHING, "1.26", "3")
