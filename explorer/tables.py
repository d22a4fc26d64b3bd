"""Rows of text below a head, for every renderer: Markdown, HTML and the terminal. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """A table with its title; ``note`` says what is counted."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def number(value: float | None, digits: int) -> str:
    """A figure with so many digits; a dash for none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def told(value: Any) -> str:
    """A value of an option in words: lists without their marks."""
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
