"""The codec: plain JSON values to dataclasses and back, and errors that name the field."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.codec import MAX_DEPTH, MAX_FREE_VALUES, decode, encode
from explorer.errors import TraceError
from explorer.trace import from_json, to_json
from tests.support.traces import make_trace


@dataclass(frozen=True)
class Leaf:
    name: str
    weight: float | None = None


@dataclass(frozen=True)
class Whole:
    count: int
    leaves: list[Leaf]
    pair: tuple[int, float] = (0, 0.0)
    by_name: dict[str, int] = field(default_factory=dict)
    is_done: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


numbers = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.builds(Leaf, st.text(st.characters(codec="utf-8")), st.none() | numbers)
wholes = st.builds(
    Whole,
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.lists(leaves, max_size=4),
    st.tuples(st.integers(-9, 9), numbers),
    st.dictionaries(st.text("ab"), st.integers(0, 9), max_size=3),
    st.booleans(),
)


@given(wholes)
def test_a_value_survives_the_round_trip(whole: Whole) -> None:
    assert decode(Whole, encode(whole), "whole") == whole


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"count": "3"}, "whole.count: expected int, found str"),
        ({"count": True}, "whole.count: expected int, found bool"),
        ({"count": None}, "whole.count: expected int, found null"),
        ({"count": 2**64}, "whole.count: the number is too large"),
        ({"leaves": {}}, "whole.leaves: expected a list, found dict"),
        ({"leaves": [{"name": "a"}, {"weight": 1.0}]}, r"whole.leaves\[1\].name: missing"),
        ({"leaves": [{"name": "\ud800"}]}, r"whole.leaves\[0\].name: the text holds half a surrogate"),
        ({"pair": [1]}, "whole.pair: expected 2 items, found 1"),
        ({"by_name": {"a": 1.5}}, "whole.by_name.a: expected int, found float"),
        ({"is_done": 1}, "whole.is_done: expected bool, found int"),
    ],
)
def test_errors_name_the_field(change: dict[str, Any], says: str) -> None:
    with pytest.raises(TraceError, match=says):
        decode(Whole, {"count": 1, "leaves": []} | change, "whole")


def test_what_is_missing_takes_its_default_and_what_is_unknown_is_ignored() -> None:
    assert decode(Whole, {"count": 1, "leaves": [], "later": {}}, "whole") == Whole(1, [])


def test_an_integer_is_a_float_where_one_is_wanted() -> None:
    leaf = decode(Leaf, {"name": "a", "weight": 2}, "leaf")
    assert isinstance(leaf.weight, float)


def test_what_json_cannot_say_becomes_null() -> None:
    assert encode({1: (float("nan"), float("inf"), 0.5)}) == {"1": [None, None, 0.5]}


def test_free_values_may_not_be_endlessly_deep() -> None:
    deep: list[Any] = []
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(TraceError, match="nested deeper"):
        decode(Whole, {"count": 1, "leaves": [], "extra": {"a": deep}}, "whole")


def test_free_values_are_bounded_in_number() -> None:
    raw = json.loads(to_json(make_trace(steps=2)))
    raw["steps"][0]["extra"] = {"x": [[]] * (MAX_FREE_VALUES + 1)}
    with pytest.raises(TraceError, match=r"extra: at most"):
        from_json(json.dumps(raw))
