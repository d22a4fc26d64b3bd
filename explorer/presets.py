"""Static trees by name: lists of child-rank paths, best first. Standard library only."""

from __future__ import annotations

import json
from functools import cache

from explorer.config import repo_path
from explorer.errors import SettingError


@cache
def _trees() -> dict[str, list[list[int]]]:
    path = repo_path("assets", "presets", "trees.json")
    try:
        trees: dict[str, list[list[int]]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"the static trees {path} cannot be read: {error}") from error
    return trees


def tree_names() -> tuple[str, ...]:
    """Names that the setting ``tree`` may take."""
    return tuple(_trees())


def load_tree(name: str) -> list[list[int]]:
    """The paths of a tree, for instance ``[[0], [1], [0, 0]]``; SettingError for an unknown name."""
    if name not in _trees():
        raise SettingError(f"unknown tree {name!r}; allowed: {', '.join(_trees())}")
    return _trees()[name]
