"""The static trees in assets/presets/trees.json are trees, best path first, as their names promise."""

from __future__ import annotations

import pytest

from explorer.errors import SettingError
from explorer.presets import load_tree, tree_names
from explorer.target_presets import load_targets


@pytest.mark.parametrize("name", tree_names())
def test_every_tree_is_a_tree(name: str) -> None:
    paths = [tuple(path) for path in load_tree(name)]
    assert len(set(paths)) == len(paths)
    assert all(path and min(path) >= 0 for path in paths)
    assert all(path[:-1] in paths for path in paths if len(path) > 1), "a path whose parent is missing"


@pytest.mark.parametrize(
    ("name", "num_paths", "depth"),
    [("mc_sim_7b_63", 63, 4), ("vicuna_7b_stage2", 63, 4), ("eagle1-25", 25, 5), ("smollm2-63", 63, 4)],
)
def test_sizes(name: str, num_paths: int, depth: int) -> None:
    paths = load_tree(name)
    assert len(paths) == num_paths
    assert max(map(len, paths)) <= depth


def test_every_tree_a_target_preset_names_exists() -> None:
    named = {
        values["tree"]
        for target in load_targets().values()
        for methods in target.settings.values()
        for values in methods.values()
        if "tree" in values
    }
    assert named
    assert named <= set(tree_names())


def test_an_unknown_tree_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(SettingError, match="'oak'.*mc_sim_7b_63"):
        load_tree("oak")
