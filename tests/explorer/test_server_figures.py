"""Figures from counters as the servers' own formulas give them, between two readings as well."""

from __future__ import annotations

import pytest

from explorer.server_figures import (
    BETWEEN,
    SINCE_START,
    VLLM,
    Counts,
    Reading,
    Series,
    between,
    figures_of,
    table_of,
)
from explorer.server_metrics import read_page
from tests.support import server_pages

SERIES = Series(VLLM, "llama")


def test_vllms_formulas() -> None:
    """1 + accepted / drafts; accepted / draft tokens; by position over drafts (vllm/v1/spec_decode/metrics.py)."""
    found = [figures_of(counts) for counts in read_page(server_pages.VLLM, "u", 0.0).counts.values()]
    assert found[0].tau == pytest.approx(1 + 120 / 100)
    assert found[0].acceptance_rate == pytest.approx(0.4)
    assert found[0].by_position == [0.7, 0.35, 0.15]
    assert (found[1].tau, found[1].acceptance_rate, found[1].by_position) == (1.6, 0.2, [0.6])


def test_sglang_by_its_counters_and_by_its_gauges_where_it_has_no_more() -> None:
    (counted,) = (figures_of(counts) for counts in read_page(server_pages.SGLANG, "u", 0.0).counts.values())
    assert counted.tau == pytest.approx((910 - 10) / 300), "a request's first token comes from its prompt pass"
    (gauges,) = (figures_of(counts) for counts in read_page(server_pages.SGLANG_GAUGES, "u", 0.0).counts.values())
    assert (gauges.tau, gauges.acceptance_rate, gauges.is_of_last_batches) == (2.5, 0.5, True)


def test_a_server_that_drafted_nothing_yet_has_no_figures() -> None:
    found = figures_of(Counts(0, 0, 0, by_position={0: 0}))
    assert (found.tau, found.acceptance_rate, found.by_position, found.is_of_last_batches) == (None, None, [], False)
    assert figures_of(Counts()).tau is None


def test_between_two_readings_only_what_is_new_counts() -> None:
    early = Reading(10.0, {SERIES: Counts(100, 300, 120, by_position={0: 70})})
    late = Reading(14.0, {SERIES: Counts(110, 330, 150, by_position={0: 79, 1: 4})})
    found = between(early, late)
    assert found.seconds == 4.0
    assert found.counts[SERIES] == Counts(10, 30, 30, by_position={0: 9, 1: 4})
    assert figures_of(found.counts[SERIES]).tau == 4.0
    row = dict(zip(table_of(found, BETWEEN).head, table_of(found, BETWEEN).rows[0], strict=True))
    assert (row["drafted/s"], row["accepted/s"], row["accepted by position"]) == ("7.5", "7.5", "0.90 0.40")


def test_a_server_that_began_anew_is_counted_from_its_start() -> None:
    early = Reading(10.0, {SERIES: Counts(100, 300, 120)})
    anew = Counts(5, 15, 6)
    assert between(early, Reading(12.0, {SERIES: anew})).counts[SERIES] == anew
    other = Series(VLLM, "another")
    assert between(early, Reading(12.0, {other: anew})).counts == {other: anew}


def test_tables_say_where_figures_come_from() -> None:
    gauges = read_page(server_pages.SGLANG_GAUGES, "u", 0.0)
    table = table_of(gauges, SINCE_START)
    assert "drafted/s" not in table.head
    assert table.rows[0][3].startswith("2.50 (now: the server gives means")
    both = Reading(0.0, {**gauges.counts, **read_page(server_pages.VLLM, "u", 0.0).counts})
    assert [row[1] for row in table_of(both, SINCE_START).rows] == ["qwen", "llama, engine 0", "llama, engine 1"]
    assert all(len(row) == len(table.head) for row in table_of(both, SINCE_START).rows)
