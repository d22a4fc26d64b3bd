"""A report as tables: what is counted, what an older report lacks, what stays out."""

from __future__ import annotations

from dataclasses import replace

from explorer.bench_report import build_report
from explorer.bench_words import by_category, bytes_text, facts, overall
from explorer.metrics import HeadCount
from explorer.trace import DrafterRecord
from tests.explorer.test_bench_report import DRAFTED, HEAD, PLAIN, SECOND

MEDUSA = replace(
    DRAFTED, drafter=DrafterRecord("d", 10, 2_500_000), target_bytes=10_000_000, heads=[HeadCount(4, 2, 3)]
)
OLDER = ("acceptance_by_head", "drafter", "by_prompt", "tau_without_own_token")


def test_every_figure_has_its_table() -> None:
    tables = {table.title: table for table in overall(build_report(HEAD, [PLAIN, MEDUSA, *SECOND]))}
    assert tables["Acceptance by head"].rows == [["eagle2", "50.0 % (75.0 %)"]]
    assert tables["Memory of the drafters"].rows == [["eagle2", "d", "2,500,000 (2.5 MB)", "25 %"]]
    assert tables["Accepted drafts of a pass"].rows == [["eagle2", "2", "2"]]
    assert tables["tau by category"].rows[1] == ["eagle2", "1.50", "3.00"]
    row = dict(zip(tables["All prompts"].head, tables["All prompts"].rows[1], strict=True))
    assert (row["tau"], row["tau without the target's own token"]) == ("2.00", "1.00")
    assert row["prompt pass ms"] == "22 (22 to 22)"
    assert all(len(line) == len(table.head) for table in tables.values() for line in table.rows)


def test_each_category_has_its_own_and_one_alone_has_none() -> None:
    found = by_category(build_report(HEAD, [PLAIN, MEDUSA, *SECOND]))
    assert list(found) == ["chat", "maths"]
    assert [table.title for table in found["chat"]] == [
        "", "Acceptance by depth", "Acceptance by head", "Accepted drafts of a pass",
    ]  # fmt: skip
    assert by_category(build_report(HEAD, [PLAIN, MEDUSA])) == {}


def test_a_report_of_an_earlier_version_is_drawn_with_what_it_has() -> None:
    report = build_report(HEAD, [PLAIN, MEDUSA, *SECOND])
    for row in report["methods"].values():
        for each in (row, *row["by_category"].values()):
            for name in OLDER:
                each.pop(name, None)
    titles = [table.title for table in overall(report)]
    assert "Acceptance by depth" in titles and "Memory of the drafters" not in titles
    assert list(by_category(report)) == ["chat", "maths"]


def test_long_lists_of_questions_are_counted() -> None:
    report = build_report({"target": "t", "question_ids": ["1", "2"]}, [PLAIN])
    assert facts(report) == [("target", "t"), ("question_ids", "2 questions")]
    assert bytes_text(1234567) == "1,234,567 (1.2 MB)"
