"""Static trees: row order, and cutting without orphans."""

from __future__ import annotations

import pytest

from explorer.presets import load_tree, tree_names
from explorer.static_tree import StaticTree


def test_static_tree_rows_are_sorted_by_length_then_value() -> None:
    tree = StaticTree.build([[1], [0], [0, 1], [1, 0], [0, 0]], num_heads=4, max_rows=64)
    assert tree.choices == ((0,), (1,), (0, 0), (0, 1), (1, 0))
    assert tree.parents == (-1, 0, 0, 1, 1, 2)
    assert tree.depths == (1, 1, 2, 2, 2)
    assert tree.ranks == (0, 1, 0, 1, 0)


@pytest.mark.parametrize("max_rows", [2, 5, 20, 64])
@pytest.mark.parametrize("num_heads", [1, 2, 5])
def test_cutting_a_tree_orphans_nothing(max_rows: int, num_heads: int) -> None:
    for name in tree_names():
        tree = StaticTree.build(load_tree(name), num_heads, max_rows)
        assert len(tree.parents) <= max_rows
        assert all(depth <= num_heads for depth in tree.depths)
        assert all(path[:-1] in {(), *tree.choices} for path in tree.choices)
