"""Batch size: what a pass over several sequences costs, with one row of each and with a whole tree of each."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Generator, Iterable
from typing import Any

from explorer.clock import Clock
from explorer.cost import any_prompt, any_tree
from explorer.lab_records import Pass
from explorer.laboratory.session import Condition, Session
from explorer.methods.registry import METHODS
from explorer.runner_events import RunRequest, Status
from explorer.target import Target
from explorer.verify import is_finite

SEQUENCES = (1, 2, 4, 8, 16)
GPU_SEQUENCES = (*SEQUENCES, 32, 64)
ROWS = (1, 4, 8, 16)
BACKEND = "naive"  # the one that attends for several sequences at once
NUM_PROMPTS = 2
REPEATS = 3
TRIALS_UNTIL = 0.5  # of the progress


def run(session: Session) -> Generator[Status, None, dict[str, list[Any]]]:
    """The trials (each method as it is by default) and the passes, of the methods' own sizes among them."""
    conditions = [_condition(session, request) for request in session.requests]
    trials = yield from session.trials(conditions, (0.0, TRIALS_UNTIL), is_timed=True)
    sizes = sorted({*ROWS, *(trial.num_rows for trial in trials)})
    passes = yield from measure_batches(session.target, sizes)
    return {"trials": trials, "passes": passes}


def _condition(session: Session, request: RunRequest) -> Condition:
    plain = dataclasses.replace(request, backend=BACKEND)
    return Condition(METHODS[request.method].label, "default", 0.0, session.with_prompts(plain, NUM_PROMPTS))


def measure_batches(
    target: Target, sizes: Iterable[int], repeats: int = REPEATS
) -> Generator[Status, None, list[Pass]]:
    """Medians over passes of every batch and size, in turns within a batch; each follows an untimed one of its own."""
    sizes, clock, passes = list(sizes), Clock(target.device), []
    prompt = any_prompt(target)
    target.start(len(prompt))
    target.prefill(prompt)
    batches = SEQUENCES if target.device.type == "cpu" else GPU_SEQUENCES
    for number, num_sequences in enumerate(batches):
        share = TRIALS_UNTIL + (1 - TRIALS_UNTIL) * number / len(batches)
        yield Status(f"passes over {num_sequences} sequences", share)
        cache = target.batch(num_sequences, max(sizes))
        times: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(repeats):
            for size in sizes:
                tree = any_tree(target, size)
                is_finite(target.forward_batch(tree, cache))
                clock.start()
                is_finite(target.forward_batch(tree, cache))
                times[size].append(clock.lap())
        passes += [Pass(num_sequences, size, statistics.median(values)) for size, values in times.items()]
    return passes
