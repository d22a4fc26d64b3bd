"""A benchmark's report as Markdown. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.bench_words import by_category, divergences, facts, overall
from explorer.markdown import sentence, table
from explorer.tables import Table


def to_markdown(report: Mapping[str, Any]) -> str:
    """All tables over all prompts, then those of each category, and the outputs that left plain decoding."""
    lines = [f"# Benchmark: {sentence(str(report['bench']['target']))}, {report['num_questions']} prompts", ""]
    lines += [f"- {sentence(name)}: {sentence(text)}" for name, text in facts(report)]
    for each in overall(report):
        lines += _section(each, "##")
    for name, tables in by_category(report).items():
        lines += ["", f"## Category: {sentence(name)}"]
        for each in tables:
            lines += _section(each, "###", has_note=False)
    lines += ["", "## Outputs that left plain decoding", ""]
    return "\n".join([*lines, *(f"- {sentence(line)}" for line in divergences(report))]) + "\n"


def _section(each: Table, mark: str, *, has_note: bool = True) -> list[str]:
    lines = ["", f"{mark} {each.title}"] if each.title else []
    lines += ["", *table(each.head, each.rows)]
    return [*lines, "", each.note] if each.note and has_note else lines
