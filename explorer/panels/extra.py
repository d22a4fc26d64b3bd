"""Reading ``step.extra``: free JSON that may come from anybody, so every shape is checked. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def count(extra: Mapping[str, Any], name: str) -> int | None:
    """A whole number, 0 or more; None for anything else."""
    return _whole(extra.get(name))


def tokens(extra: Mapping[str, Any], name: str) -> list[int] | None:
    """A list of token ids; None for anything else."""
    return _tokens(extra.get(name))


def token_lists(extra: Mapping[str, Any], name: str) -> list[list[int]] | None:
    """A list of lists of token ids; None for anything else."""
    raw = extra.get(name)
    if not isinstance(raw, list):
        return None
    found = [_tokens(inner) for inner in raw]
    return None if None in found else [inner for inner in found if inner is not None]


def ranked_lists(extra: Mapping[str, Any], name: str) -> list[list[tuple[int, float]]] | None:
    """A list of lists of [token id, probability]; None for anything else."""
    raw = extra.get(name)
    if not isinstance(raw, list) or not all(isinstance(inner, list) for inner in raw):
        return None
    found = [[_ranked(item) for item in inner] for inner in raw]
    if any(item is None for inner in found for item in inner):
        return None
    return [[item for item in inner if item is not None] for inner in found]


def _ranked(raw: Any) -> tuple[int, float] | None:
    if not isinstance(raw, list | tuple) or len(raw) != 2:
        return None
    token, prob = _whole(raw[0]), raw[1]
    is_prob = isinstance(prob, int | float) and not isinstance(prob, bool)
    return (token, float(prob)) if token is not None and is_prob else None


def _tokens(raw: Any) -> list[int] | None:
    if not isinstance(raw, list):
        return None
    found = [_whole(item) for item in raw]
    return None if None in found else [item for item in found if item is not None]


def _whole(raw: Any) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else None
