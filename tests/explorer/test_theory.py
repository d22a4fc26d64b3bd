"""Each formula against counting or numbers worked out by hand."""

from __future__ import annotations

import pytest

from explorer.theory import (
    ModelShape,
    PassWork,
    Peaks,
    expected_speedup,
    expected_tokens,
    floor_ms,
    free_rows,
    kv_bytes,
    pass_work,
)

SHAPE = ModelShape(num_weights=1000, num_bytes=4, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8)


def test_work_of_a_pass_counted_by_hand() -> None:
    work = pass_work(SHAPE, num_rows=3, prefix_len=10)
    assert work.num_bytes == 1000 * 4 + 13 * 2 * 2 * 2 * 8 * 4  # weights, then keys and values of 13 tokens
    assert work.num_operations == 3 * 2 * 1000 + 3 * 13 * 4 * 8 * 2 * 4  # two products of two operations a key
    assert kv_bytes(SHAPE, 1) == 256


def test_the_floor_is_the_slower_of_reading_and_computing() -> None:
    work = PassWork(num_bytes=2e6, num_operations=4e6)
    assert floor_ms(work, Peaks(bandwidth=1e9, rate=1e12)) == pytest.approx(2.0)
    assert floor_ms(work, Peaks(bandwidth=1e12, rate=1e9)) == pytest.approx(4.0)


def test_free_rows_end_where_the_floor_begins_to_rise() -> None:
    peaks = Peaks(bandwidth=1e9, rate=8e9)
    rows = free_rows(SHAPE, 0, peaks)
    floors = [floor_ms(pass_work(SHAPE, count, 0), peaks) for count in (1, rows, rows + 1, rows + 2)]
    reading = 1000 * pass_work(SHAPE, rows, 0).num_bytes / peaks.bandwidth
    assert floors[1] == pytest.approx(reading)
    assert floors[3] - floors[2] > 2 * (floors[1] - floors[0]) / max(1, rows - 1)
    assert free_rows(SHAPE, 0, Peaks(1e9, 1e18), most=32) == 32
    assert free_rows(SHAPE, 0, Peaks(1e18, 1e9)) == 1


@pytest.mark.parametrize(("alpha", "depth"), [(0.0, 3), (0.5, 1), (0.7, 4), (1.0, 5)])
def test_expected_tokens_is_the_sum_over_accepted_lengths(alpha: float, depth: int) -> None:
    assert expected_tokens(alpha, depth) == pytest.approx(sum(alpha**k for k in range(depth + 1)))


def test_expected_tokens_refuses_what_is_no_probability() -> None:
    with pytest.raises(ValueError, match="probability"):
        expected_tokens(1.1, 3)


def test_expected_speedup_pays_for_drafts_alone() -> None:
    assert expected_speedup(3.0, draft_ms=0.0, pass_ms=10.0) == 3.0
    assert expected_speedup(3.0, draft_ms=20.0, pass_ms=10.0) == pytest.approx(1.0)
