"""The shape of the tree: one setting at a time around the defaults, with what passes of every size cost here."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any

from explorer.config import describe
from explorer.cost import measure_device
from explorer.lab_records import Pass
from explorer.laboratory.session import Condition, Session
from explorer.methods.registry import METHODS
from explorer.runner_events import RunRequest, Status

VALUES = {"total_tokens": (4, 8, 16, 32), "depth": (1, 3, 5), "top_k": (2, 4, 8)}
PLAIN = "autoregressive"
NUM_PROMPTS = 2
PASSES_FROM = 0.9  # of the progress


def run(session: Session) -> Generator[Status, None, dict[str, list[Any]]]:
    """The trials, plain decoding first, and the passes."""
    plain = dataclasses.replace(session.requests[0], method=PLAIN, drafter=None, settings={})
    conditions = [Condition(METHODS[PLAIN].label, "plain", 0.0, session.with_prompts(plain, NUM_PROMPTS))]
    for request in session.requests:
        conditions += _conditions(session, request)
    trials = yield from session.trials(conditions, (0.0, PASSES_FROM), is_timed=True)
    cost = session.models.device_cost
    if cost is None:
        cost = session.models.device_cost = yield from measure_device(session.target)
    return {"trials": trials, "passes": [Pass(1, rows, ms) for rows, ms in sorted(cost.verify_ms.items())]}


def _conditions(session: Session, request: RunRequest) -> list[Condition]:
    """Every value of every setting of the method that has one; all others stay as they are by default."""
    kind = METHODS[request.method]
    known, base = {item.name for item in describe(kind.Settings)}, session.settings(request)
    found = []
    for name, values in VALUES.items():
        for value in values if name in known else ():
            changed = dataclasses.replace(request, settings=base | {name: value})
            found.append(Condition(kind.label, name, float(value), session.with_prompts(changed, NUM_PROMPTS)))
    return found
