"""Hypothesis strategies for what nobody wrote on purpose: damaged bytes, wrong values in right places, odd requests."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

ODD_VALUES: list[Any] = [
    None, True, -1, 0, 1, 2**62, 2**70, 0.5, -0.0, 1e308, 1e-320, "", "x", "\x00", "‮", "../../etc/passwd", "a" * 3000,
    [], [[]], {}, {"a": {}}, [0] * 40, ["x"], [[1, 0.5]],
]  # fmt: skip


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """``data`` with a few bytes changed, a part cut out, or its end missing."""
    places = st.integers(0, max(len(data) - 1, 0))

    def change(edits: list[tuple[int, bytes]]) -> bytes:
        changed = bytearray(data)
        for at, new in edits:
            changed[at : at + len(new)] = new
        return bytes(changed)

    edits = st.lists(st.tuples(places, st.binary(min_size=1, max_size=4)), min_size=1, max_size=4).map(change)
    cut = places.map(lambda end: data[:end])
    hole = st.tuples(places, st.integers(1, 64)).map(lambda hole: data[: hole[0]] + data[hole[0] + hole[1] :])
    return st.one_of(edits, cut, hole, st.binary(max_size=64))


@st.composite
def misfilled(draw: st.DrawFn, value: Any) -> Any:
    """A JSON ``value`` with one to three of its parts replaced, removed or repeated."""
    changed = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        _misfill(draw, changed)
    return changed


def _misfill(draw: st.DrawFn, value: Any) -> None:
    parent, key = value, None
    while isinstance(parent, dict | list) and parent:
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        key = draw(st.sampled_from(keys))
        if not isinstance(parent[key], dict | list) or not parent[key] or draw(st.integers(0, 5)) == 0:
            break
        parent = parent[key]
    if key is None or not parent:
        return
    action = draw(st.integers(0, 9))
    if action == 0:
        del parent[key]
    elif action == 1 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif action == 2 and isinstance(parent[key], int | float) and not isinstance(parent[key], bool):
        parent[key] += draw(st.sampled_from([-1, 1, 7]))
    else:
        parent[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
