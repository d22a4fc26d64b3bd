"""Each formula against counting, simulation or numbers worked out by hand."""

from __future__ import annotations

import random

import pytest

from explorer.theory import (
    ModelShape,
    PassWork,
    Peaks,
    break_even,
    expected_tokens,
    floor_ms,
    free_rows,
    kv_bytes,
    pass_work,
    speedup,
    tokens_by_depth,
)

SHAPE = ModelShape(num_weights=1000, num_bytes=4, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8)


@pytest.mark.parametrize(("alpha", "length"), [(0.0, 4), (0.6, 1), (0.8, 5), (1.0, 3)])
def test_expected_tokens_are_what_a_simulation_counts(alpha: float, length: int) -> None:
    chance, total, runs = random.Random(0), 0, 20_000
    for _ in range(runs):
        accepted = 0
        while accepted < length and chance.random() < alpha:
            accepted += 1
        total += accepted + 1
    assert expected_tokens(alpha, length) == pytest.approx(total / runs, abs=0.03)


def test_one_share_at_every_depth_is_the_closed_form() -> None:
    assert tokens_by_depth([0.7] * 5) == pytest.approx(expected_tokens(0.7, 5))
    assert tokens_by_depth([0.5, None]) == 1.5
    assert tokens_by_depth([]) == 1.0


def test_work_of_a_pass_counted_by_hand() -> None:
    work = pass_work(SHAPE, num_rows=3, prefix_len=10)
    assert work.num_bytes == 1000 * 4 + 13 * 2 * 2 * 2 * 8 * 4  # weights, then keys and values of 13 tokens
    assert work.num_operations == 3 * 2 * 1000 + 3 * 13 * 4 * 8 * 2 * 4  # two products of two operations a key
    assert kv_bytes(SHAPE, 1) == 256
    assert PassWork(4.0, 8.0).intensity == 2.0


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


def test_speedup_is_one_at_the_break_even() -> None:
    assert speedup(break_even(1.4, 0.2), 1.4, 0.2) == pytest.approx(1.0)
    assert speedup(2.0, 1.25, 0.35) == pytest.approx(1.25)
