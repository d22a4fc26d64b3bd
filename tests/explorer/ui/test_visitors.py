"""A visitor's places in line."""

from __future__ import annotations

import pytest

from explorer.errors import LimitError
from explorer.ui.visitors import Visitors


def test_places_are_bounded_by_visitor_and_given_back() -> None:
    visitors = Visitors(2)
    with visitors.admit("a"), visitors.admit("a"), visitors.admit("b"), visitors.admit(None):
        with pytest.raises(LimitError, match="2 runs waiting or running"), visitors.admit("a"):
            pass
        with visitors.admit("b"):
            pass
    with visitors.admit("a"), visitors.admit("a"):
        pass
    assert not visitors._num_runs, "a visitor who left leaves nothing behind"
    alone = Visitors(1)
    with alone.admit("a"), pytest.raises(LimitError, match="You have 1 run waiting"), alone.admit("a"):
        pass
