"""Where the tiny golden checkpoints and outputs lie."""

from __future__ import annotations

from pathlib import Path

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"


def golden(name: str) -> Path:
    """A folder or file of tests/goldens, for instance ``golden("base_a")``."""
    path = GOLDENS / name
    assert path.exists(), f"{path} is missing"
    return path
