"""What the counters of running servers say of their drafts, as figures and tables. Standard library only.

Counters run since a server's start; two readings give what happened between them. tau is 1 + accepted / steps with the
target's own token, as everywhere here and as vLLM defines it (vllm/v1/spec_decode/metrics.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from explorer.tables import NOTHING, Table, number

OURS, VLLM, SGLANG = "this app", "vLLM", "SGLang"
SINCE_START, BETWEEN = "Since the server's start", "Since the reading before"
NOTE = (
    "tau: tokens a step, the target's own included. Drafts accepted: of all drafted tokens; in a tree most siblings "
    "must fail, so trees of this app and of SGLang show less than chains of vLLM. By position: of the steps that "
    "drafted, the share in which the first, second, ... drafted token was accepted; that is comparable."
)
GAUGES = "now: the server gives means of its last batches, and no counts"


@dataclass(frozen=True)
class Counts:
    """What one series (a model on an engine, or a method of ours) has counted. None: the server does not tell."""

    steps: float | None = None
    drafted: float | None = None
    accepted: float | None = None
    tokens: float | None = None
    requests: float | None = None
    by_position: Mapping[int, float] = field(default_factory=dict)
    gauge_tau: float | None = None  # of SGLang's last batches
    gauge_rate: float | None = None


@dataclass(frozen=True)
class Series:
    """Whose counts they are."""

    server: str
    name: str  # the model, or the method
    engine: str = ""


@dataclass(frozen=True)
class Reading:
    """One look at a server: counts by series. seconds: of any clock, to tell how far two readings are apart."""

    seconds: float
    counts: Mapping[Series, Counts]


@dataclass(frozen=True)
class Figures:
    """What follows from counts; None where they do not tell."""

    steps: float | None
    tau: float | None
    acceptance_rate: float | None
    by_position: list[float]
    is_of_last_batches: bool = False


def figures_of(counts: Counts) -> Figures:
    """Acceptance from counts, and from gauges only where nothing was counted."""
    steps, is_counted = counts.steps, counts.accepted is not None
    tau = _ratio(counts.accepted, steps)
    if tau is not None:
        tau += 1
    elif not is_counted and counts.tokens is not None and counts.requests is not None:
        tau = _ratio(counts.tokens - counts.requests, steps)  # a request's first token comes from its prompt pass
    is_gauge = tau is None and not is_counted and bool(counts.gauge_tau)
    rate = _ratio(counts.accepted, counts.drafted) if is_counted else counts.gauge_rate
    positions = sorted(counts.by_position)
    shares = [_ratio(counts.by_position[place], steps) for place in positions]
    return Figures(
        steps,
        counts.gauge_tau if is_gauge else tau,
        rate,
        [share for share in shares if share is not None],
        is_gauge or (rate is not None and not is_counted),
    )


def between(before: Reading, after: Reading) -> Reading:
    """What was counted from one reading to the next; a server that began anew in between is counted from its start."""
    found = {}
    for series, late in after.counts.items():
        early = before.counts.get(series)
        is_anew = early is not None and any(
            (now := getattr(late, item.name)) is not None
            and (then := getattr(early, item.name)) is not None
            and now < then
            for item in fields(Counts)
            if item.name in _COUNTED
        )
        found[series] = late if early is None or is_anew else _difference(early, late)
    return Reading(after.seconds - before.seconds, found)


def table_of(reading: Reading, title: str) -> Table:
    """A row for each series; with ``BETWEEN`` as title, rates by the second as well."""
    per_second = reading.seconds if title == BETWEEN and reading.seconds > 0 else None
    rows = [_row(series, counts, per_second) for series, counts in sorted(reading.counts.items(), key=_order)]
    head = ["server", "model or method", "steps", "tau", "drafts accepted", "accepted by position"]
    return Table(title, [*head, "drafted/s", "accepted/s"] if per_second else head, rows, NOTE)


_COUNTED = ("steps", "drafted", "accepted", "tokens", "requests")


def _row(series: Series, counts: Counts, seconds: float | None) -> list[str]:
    found = figures_of(counts)
    mark = f" ({GAUGES})" if found.is_of_last_batches else ""
    name = f"{series.name}, engine {series.engine}" if series.engine else series.name
    row = [
        series.server,
        name,
        number(found.steps, 0),
        number(found.tau, 2) + (mark if found.tau is not None else ""),
        NOTHING if found.acceptance_rate is None else f"{100 * found.acceptance_rate:.1f} %",
        " ".join(f"{share:.2f}" for share in found.by_position) or NOTHING,
    ]
    if seconds:
        row += [number(_ratio(value, seconds), 1) for value in (counts.drafted, counts.accepted)]
    return row


def _order(item: tuple[Series, Counts]) -> tuple[str, str, str]:
    return item[0].server, item[0].name, item[0].engine.rjust(8)


def _difference(early: Counts, late: Counts) -> Counts:
    def less(name: str) -> float | None:
        now, then = getattr(late, name), getattr(early, name)
        return None if now is None else now - (then or 0)

    positions = {place: max(0.0, value - early.by_position.get(place, 0)) for place, value in late.by_position.items()}
    counted = {name: less(name) for name in _COUNTED}
    return Counts(**counted, by_position=positions, gauge_tau=late.gauge_tau, gauge_rate=late.gauge_rate)


def _ratio(value: float | None, whole: float | None) -> float | None:
    return value / whole if value is not None and whole else None
