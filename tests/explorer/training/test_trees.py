"""Static trees: best first, closed under parents, merged into the presets without loss."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from explorer.training.trees import expected_length, grow_tree, merge_trees

ACCURACY = [[0.5, 0.2, 0.1], [0.4, 0.3, 0.05], [0.3, 0.1, 0.0]]


def probability(path: list[int]) -> float:
    result = 1.0
    for depth, rank in enumerate(path):
        result *= ACCURACY[depth][rank]
    return result


def test_the_tree_is_the_best_of_its_size() -> None:
    everything = [list(path) for depth in (1, 2, 3) for path in product(range(3), repeat=depth)]
    best = sorted((probability(path) for path in everything), reverse=True)[:8]
    tree = grow_tree(ACCURACY, 8)
    assert [probability(path) for path in tree] == pytest.approx(best)
    assert tree[0] == [0]
    assert expected_length(ACCURACY, tree) == pytest.approx(1 + sum(best))


def test_parents_come_before_children_and_siblings_in_order() -> None:
    tree = grow_tree(ACCURACY, 20)
    assert len(tree) == 20
    for number, path in enumerate(tree):
        assert len(path) == 1 or path[:-1] in tree[:number]
        assert path[-1] == 0 or [*path[:-1], path[-1] - 1] in tree[:number]


def test_heads_that_are_never_right_end_the_tree() -> None:
    assert grow_tree([[0.0, 0.0]], 5) == [[0]]


def test_merging_keeps_other_trees(tmp_path: Path) -> None:
    path = tmp_path / "trees.json"
    merge_trees(path, {"old": [[0]], "both": [[0]]})
    merge_trees(path, {"both": [[0], [1]]})
    assert json.loads(path.read_text()) == {"old": [[0]], "both": [[0], [1]]}
