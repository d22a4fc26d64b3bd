"""Groups of tokens: what counts as tested, where groups begin, which way of missing is named."""

from __future__ import annotations

import pytest

from explorer.misses import LABELS
from explorer.spots import Spot
from explorer.tallies import by_class, by_entropy, by_position, main_miss, tally


def spot(index: int, ending: str = "accepted", entropy: float | None = 0.0, token_class: str = "words") -> Spot:
    return Spot(index, 0, 1, ending, False, token_class, entropy)


def test_a_tally_counts_what_was_tested_and_lists_the_rest() -> None:
    found = tally("x", [spot(1), spot(2), spot(3, "pruned"), spot(4, "deepest"), spot(5, "plain")])
    assert (found.num_tokens, found.num_accepted, found.num_missed) == (5, 2, 1)
    assert found.acceptance == pytest.approx(2 / 3)
    assert found.endings == {"pruned": 1, "deepest": 1, "plain": 1}
    assert tally("x", [spot(1, "plain")]).acceptance is None


def test_groups_begin_where_their_names_say() -> None:
    assert [(t.name, t.num_tokens) for t in by_position([spot(i) for i in (1, 15, 16, 64, 5000)])] == [
        ("0 to 15", 2), ("16 to 31", 1), ("64 to 127", 1), ("from 1024", 1),
    ]  # fmt: skip
    found = by_entropy([spot(1, entropy=value) for value in (0.0, 0.25, 2.9, 3.0, None)])
    assert [(t.name, t.num_tokens) for t in found] == [
        ("0 to 0.25 bits", 1), ("0.25 to 0.5 bits", 1), ("2 to 3 bits", 1), ("3 bits or more", 1),
    ]  # fmt: skip


def test_classes_come_in_their_order_and_the_main_miss_is_the_most_frequent() -> None:
    found = [spot(1, "pruned", token_class="words"), spot(2, "pruned", token_class="digits"), spot(3, "leaf")]
    assert [each.name for each in by_class(found)] == ["digits", "words"]
    assert main_miss(found) == LABELS["pruned"]
    assert main_miss([spot(1)]) == "none missed"
