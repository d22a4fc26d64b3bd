"""A diagnosis as Markdown. Standard library only."""

from __future__ import annotations

from explorer.diagnose import Diagnosis
from explorer.diagnose_words import method_tables, overview, ranking, verdict_lines
from explorer.markdown import sentence, table
from explorer.tables import Table


def to_markdown(found: Diagnosis) -> str:
    """The verdicts, the ranking, then every method's tables."""
    lines = ["# Diagnosis", ""]
    for item in found.methods:
        lines += [f"## {sentence(item.label)}: what would help", ""]
        for line in verdict_lines(item):
            lines += [sentence(line), ""]
    for each in (overview(found), *ranking(found)):
        lines += _section(each, "##")
    for item in found.methods:
        lines += [f"## {sentence(item.label)}", ""]
        for each in method_tables(item):
            lines += _section(each, "###")
    return "\n".join(lines).rstrip() + "\n"


def _section(each: Table, mark: str) -> list[str]:
    note = [sentence(each.note), ""] if each.note else []
    return [f"{mark} {sentence(each.title)}", "", *table(each.head, each.rows), "", *note]
