"""Rates of an endpoint are over the time it was busy, and a token's time is apart from a piece's."""

from __future__ import annotations

import pytest

from explorer.client_report import busy_seconds, client_figures, spread_with_tail
from explorer.measurement import ClientView, Measurement


def measured(question: str, started: float, ended: float, gaps: list[float], num_tokens: int) -> Measurement:
    view = ClientView(started, ended, gaps, num_tokens, "words")
    return Measurement(question, "all", "endpoint", [], "stop", 5, 100.0, sum(gaps), client=view)


def test_time_that_nothing_was_asked_is_not_counted() -> None:
    assert busy_seconds([(0, 2), (1, 3), (10, 11), (10.5, 10.7)]) == 4
    assert busy_seconds([]) == 0


def test_an_endpoints_figures() -> None:
    items = [measured("1", 0, 2, [10, 30], 5), measured("2", 1, 3, [20], 3)]
    found = client_figures(items)
    assert found is not None
    assert (found["seconds"], found["num_tokens"]) == (3, 8)
    assert found["tokens_per_second"] == pytest.approx(8 / 3)
    assert found["requests_per_second"] == pytest.approx(2 / 3)
    assert found["tokens_per_piece"] == 8 / 5  # a piece before each gap, and the last
    assert found["token_ms"]["median"] == 10  # 40 ms over four tokens after the first, 20 over two
    assert found["piece_ms"]["median"] == 20
    assert client_figures([Measurement("1", "all", "medusa", [1], "eos", 5, 1.0, 1.0)]) is None


def test_the_tail_is_the_99th_percentile() -> None:
    spread = spread_with_tail(range(101))
    assert spread == {"median": 50, "low_quartile": 25, "high_quartile": 75, "p99": 99}
    assert spread_with_tail([3]) == {"median": 3, "low_quartile": 3, "high_quartile": 3, "p99": 3}
    assert spread_with_tail([]) is None
