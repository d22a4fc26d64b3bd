"""Temperature: how tau falls where the target's choice is left to chance, by method and acceptance rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator

from explorer.config import Sampling
from explorer.lab_records import Trial
from explorer.laboratory.session import Condition, Session
from explorer.methods.registry import METHODS
from explorer.runner_events import RunRequest, Status

TEMPERATURES = (0.0, 0.5, 1.0, 1.5)
SEEDS = (0, 1)
NUM_PROMPTS = 2


def run(session: Session) -> Generator[Status, None, dict[str, list[Trial]]]:
    """The trials: every method under rejection, and under typical acceptance where it has that."""
    conditions = []
    for request in session.requests:
        kind = METHODS[request.method]
        for rule in [rule for rule in ("rejection", "typical") if rule in kind.acceptances]:
            lane = kind.label if rule == "rejection" else f"{kind.label}, {rule}"
            conditions += [_condition(session, request, lane, rule, value) for value in _temperatures(rule)]
    trials = yield from session.trials(conditions)
    return {"trials": trials}


def _temperatures(rule: str) -> tuple[float, ...]:
    """Typical acceptance is defined above 0 only."""
    return TEMPERATURES if rule == "rejection" else TEMPERATURES[1:]


def _condition(session: Session, request: RunRequest, lane: str, rule: str, temperature: float) -> Condition:
    acceptance = rule if temperature else None
    samplings = [
        Sampling(temperature, seed=seed, acceptance=acceptance) for seed in SEEDS[: None if temperature else 1]
    ]
    requests = [dataclasses.replace(request, sampling=sampling) for sampling in samplings]
    repeated = tuple(one for each in requests for one in session.with_prompts(each, NUM_PROMPTS))
    return Condition(lane, "temperature", temperature, repeated)
