"""Passes of every batch and size, the methods' own sizes among them."""

from __future__ import annotations

from explorer.laboratory import batch
from explorer.laboratory.session import Session
from explorer.runner_events import drain
from tests.support.lab import golden_requests


def test_every_batch_and_size_is_measured() -> None:
    settings = {"total_tokens": 6, "depth": 2, "top_k": 3}
    found = drain(batch.run(Session(golden_requests("eagle2", settings=settings), ["Count to ten", "Hello"])))
    [trial] = found["trials"]
    measured = {(item.num_sequences, item.num_rows) for item in found["passes"]}
    rows = {*batch.ROWS, trial.num_rows}
    sequences = {item.num_sequences for item in found["passes"]}
    assert sequences >= set(batch.SEQUENCES)
    assert measured == {(size, count) for size in sequences for count in rows}
    assert all(item.ms > 0 for item in found["passes"])
