"""What clients of a server see, from measurements that were made over the network. Standard library only."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from explorer.measurement import Measurement


def client_figures(items: Sequence[Measurement]) -> dict[str, Any] | None:
    """Figures of the whole endpoint; None where nothing was measured over the network.

    Rates are over the seconds in which at least one request was under way: what lay between two sittings of a resumed
    benchmark is not counted. Times are milliseconds.
    """
    seen = [(item, item.client) for item in items if item.client is not None]
    if not seen:
        return None
    seconds = busy_seconds([(client.started_s, client.ended_s) for _, client in seen])
    num_tokens = sum(item.num_output_tokens for item, _ in seen)
    gaps = [gap for _, client in seen for gap in client.gaps_ms]
    num_pieces = sum(len(client.gaps_ms) + 1 for _, client in seen)
    tokens = [item.decode_ms / (item.num_output_tokens - 1) for item, _ in seen if item.num_output_tokens > 1]
    return {
        "seconds": seconds,
        "num_tokens": num_tokens,
        "requests_per_second": len(seen) / seconds if seconds else None,
        "tokens_per_second": num_tokens / seconds if seconds else None,
        "first_token_ms": spread_with_tail(item.prefill_ms for item, _ in seen),
        "token_ms": spread_with_tail(tokens),
        "piece_ms": spread_with_tail(gaps),
        "tokens_per_piece": num_tokens / num_pieces,
        "is_counted_by_pieces": any(client.is_counted_by_pieces for _, client in seen),
    }


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """How long at least one of the spans (start, end) lasted."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def spread_with_tail(values: Iterable[float]) -> dict[str, float] | None:
    """Median, quartiles and the 99th percentile."""
    found = sorted(values)
    if not found:
        return None
    cuts = statistics.quantiles(found, n=100, method="inclusive") if len(found) > 1 else found * 99
    return {"median": cuts[49], "low_quartile": cuts[24], "high_quartile": cuts[74], "p99": cuts[98]}
