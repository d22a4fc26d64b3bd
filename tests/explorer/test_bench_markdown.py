"""Text from files cannot break the report's Markdown."""

from __future__ import annotations

from dataclasses import replace

from explorer.bench_markdown import to_markdown
from explorer.bench_report import build_report
from tests.explorer.test_bench_report import DRAFTED, HEAD, PLAIN, SECOND


def test_a_category_cannot_break_a_table_or_add_markup() -> None:
    wild = "a|<script>\n# x"
    text = to_markdown(build_report(HEAD, [replace(PLAIN, category=wild), DRAFTED, *SECOND]))
    assert "| method | a\\|&lt;script> # x |" in text
    assert "<script>" not in text and "\n# x" not in text


def test_categories_have_sections_and_what_left_plain_decoding_is_listed() -> None:
    text = to_markdown(build_report(HEAD, [PLAIN, replace(DRAFTED, output=[5, 6, 9, 8]), *SECOND]))
    assert "## Category: maths" in text
    assert "- eagle2, question 1: token 2, top-2 logit gap 0.0002, a near-tie\n" in text
    assert to_markdown(build_report(HEAD, [PLAIN])).endswith("- none\n")
