"""Records of the laboratory, made up: numbers that are easy to check by hand."""

from __future__ import annotations

from typing import Any

from explorer.lab_records import Changed, LabRecord, Machine, Pass, Trial
from explorer.runner_events import RunRequest
from explorer.theory import ModelShape
from explorer.trace import DrafterRecord
from tests.support.goldens import FOLDER

SHAPE = ModelShape(num_weights=1_000_000, num_bytes=4, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8)


def make_trial(tau: float, sweep: str = "", value: float = 0.0, **changes: Any) -> Trial:
    """100 steps of EAGLE-2 with 12 rows and two levels, of which the first takes all that was accepted."""
    accepted = round(100 * (tau - 1))
    first = min(accepted, 100)
    values: dict[str, Any] = {
        "method": "eagle2",
        "lane": "EAGLE-2",
        "sweep": sweep,
        "value": value,
        "num_steps": 100,
        "num_draft_tokens": 1100,
        "num_accepted_draft_tokens": accepted,
        "tried_by_depth": [100, first],
        "accepted_by_depth": [first, accepted - first],
        "num_rows": 12,
        "draft_ms": 5.0,
        "verify_ms": 14.0,
        "step_ms": 20.0,
        "taus": [round(tau, 4)] * 2,
    }
    return Trial(**(values | changes))


def make_record(experiment: str, trials: list[Trial] | None = None, **changes: Any) -> LabRecord:
    """A record of an experiment; without trials, with some that fit it."""
    return LabRecord(
        **{
            "experiment": experiment,
            "date": "2026-01-02",
            "target": "Tiny target",
            "machine": Machine("a made-up CPU", "cpu", "float32", 2, 0.1),
            "settings": {"max_new_tokens": 32},
            "trials": trials if trials is not None else _trials(experiment),
            "drafters": {"eagle2": DrafterRecord("eagle", 1000, 4_000_000)},
            "passes": PASSES if experiment in ("tree", "batch") else [],
            "changed": [Changed(0.0, 1.0, 3.0), Changed(0.05, 0.7, 6.0)] if experiment == "desync" else [],
            "shape": SHAPE,
            "target_bytes": 8_000_000,
            "trained_length": 512,
            "seconds": 60.0,
            **changes,
        }
    )


PASSES = [
    Pass(size, rows, round(size * (0.4 * rows if rows > 1 else 1) + 9.0, 4))
    for size in (1, 2, 4)
    for rows in (1, 4, 12)
]


def _trials(experiment: str) -> list[Trial]:
    nothing: dict[str, Any] = {"tried_by_depth": [], "accepted_by_depth": [], "num_draft_tokens": 0}
    times = {"draft_ms": 0.0, "verify_ms": 9.0, "step_ms": 10.0}
    plain = make_trial(1.0, "plain", method="autoregressive", lane="Autoregressive", num_rows=1, **nothing, **times)
    found = {
        "temperature": [
            *(make_trial(2.0 - t / 2, "temperature", t) for t in (0.0, 1.0)),
            *(make_trial(2.0 - t / 2, "temperature", t, lane="Medusa", method="medusa") for t in (0.0, 1.0)),
            make_trial(1.8, "temperature", 1.0, lane="Medusa, typical", method="medusa"),
        ],
        "tree": [
            plain,
            *(make_trial(1 + n / 20, "total_tokens", n, num_rows=n, step_ms=15.0 + n) for n in (4, 12)),
            *(make_trial(1.3 + n / 20, "depth", n) for n in (1, 3)),
            *(make_trial(1.4 + n / 20, "top_k", n) for n in (2, 4)),
        ],
        "desync": [make_trial(tau, "noise", noise) for tau, noise in ((2.0, 0.0), (1.1, 0.05))],
        "batch": [make_trial(2.0, "default")],
        "template": [
            make_trial(tau, "template", float(i), word=word)
            for i, (tau, word) in enumerate(((2.0, "its own"), (1.5, "none"), (2.0, "Vicuna's")))
        ],
        "context": [make_trial(tau, "prefix", at) for tau, at in ((2.0, 40.0), (2.0, 400.0), (1.5, 800.0))],
    }
    return found[experiment]


def golden_requests(*methods: str, **changes: Any) -> list[RunRequest]:
    """Requests on a tiny target with its real drafters."""
    drafters = {"eagle2": "eagle_bias", "medusa": "medusa_a"}
    return [
        RunRequest(
            method,
            target=str(FOLDER / "base_a"),
            drafter=str(FOLDER / drafters[method]),
            **({"max_new_tokens": 8, "baseline": False, "ignore_stop": True} | changes),
        )
        for method in methods
    ]
