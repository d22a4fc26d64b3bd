"""Markdown from text of unknown make: nothing in it becomes a table, a link or markup. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from explorer.insight import visible

_MARKS = re.compile(r"([\\`*_{}\[\]|~])")
_ISOLATES = {0x2068: None, 0x2069: None}


def escape(text: str) -> str:
    """Text on one line that Markdown shows as it is."""
    shown = visible(" ".join(text.translate(_ISOLATES).split()))
    return _MARKS.sub(r"\\\1", shown.replace("&", "&amp;").replace("<", "&lt;"))


def sentence(text: str) -> str:
    """One of our own sentences, which quotes tokens: as ``escape``, but plain underscores inside words stay."""
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", escape(text))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [_line(head), "|---" * len(head) + "|"]
    return [*lines, *(_line(row) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(sentence(cell) for cell in cells)} |"
