"""Which implementation of an operation runs: pick(op, backend). Nothing is imported before it is picked."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

BACKENDS = ("auto", "naive", "triton")
_IMPLEMENTATIONS = {("tree_attention", "naive"): "kernels.tree_attention.naive"}


class BackendUnavailableError(RuntimeError):
    """An explicitly chosen backend that this installation does not have."""


def resolve(op: str, backend: str) -> str:
    """The backend that ``backend`` means for ``op``; "auto" takes the fastest that exists, a named one must exist."""
    if backend not in BACKENDS:
        raise BackendUnavailableError(f"unknown backend {backend!r}: choose one of {', '.join(BACKENDS)}")
    chosen = "naive" if backend == "auto" else backend
    if (op, chosen) not in _IMPLEMENTATIONS:
        raise BackendUnavailableError(f"{op} has no {chosen!r} backend here: choose auto or naive")
    return chosen


def pick(op: str, backend: str) -> Callable[..., Any]:
    """The function that implements ``op``; raises BackendUnavailableError rather than fall back silently."""
    module = import_module(_IMPLEMENTATIONS[op, resolve(op, backend)])
    implementation: Callable[..., Any] = getattr(module, op)
    return implementation
