"""Projections follow the roofline of the published peaks."""

from __future__ import annotations

import pytest

from explorer.projections import PUBLISHED, projection_table
from explorer.theory import ModelShape

SEVEN_BILLION = ModelShape(
    num_weights=6_600_000_000, num_bytes=4, num_layers=32, num_heads=32, num_kv_heads=32, head_dim=128
)


def test_a_pass_over_one_row_reads_the_weights_once() -> None:
    found = projection_table(SEVEN_BILLION, 0)
    one = {row[0]: float(row[1]) for row in found.rows}
    assert one.keys() == PUBLISHED.keys()
    assert one["H200 SXM"] == pytest.approx(1000 * 2 * 6.6e9 / 4.8e12, rel=0.01), "in bfloat16, whatever runs here"


def test_sixty_rows_are_free_where_memory_is_slow_for_the_arithmetic() -> None:
    found = projection_table(SEVEN_BILLION, 256)
    for row in found.rows:
        peaks = PUBLISHED[row[0]]
        assert float(row[3]) == pytest.approx(1.0, abs=0.03), row
        assert int(row[4]) == pytest.approx(peaks.rate / peaks.bandwidth, rel=0.1), "one operation a byte and row"
    assert "not measured" in found.note
