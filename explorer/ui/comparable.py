"""Which runs can stand beside the one on screen: recorded ones of its prompt and target, and the visitor's own.

Only the visitor's browser knows the ids of its own runs, and sends them along: no id is ever told to anybody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.errors import TraceError
from explorer.insight import plural, visible
from explorer.rules import sampling_text, settings_texts
from explorer.side_by_side import check_comparable, run_labels
from explorer.trace import Trace
from explorer.ui.store import TraceStore

ALONE = "No other run of this prompt and target is here. Run another method on it, race several, or open a trace file."


@dataclass(frozen=True)
class ComparableRun:
    """One run as a choice. label: its method, and what tells it from the other choices; title: where it comes from.

    speedup: against its own baseline, None without one. is_own: the visitor's, not a recorded one.
    """

    id: str
    label: str
    title: str
    method: str
    settings: str
    num_tokens: int
    speedup: float | None
    is_own: bool


@dataclass(frozen=True)
class ComparableRuns:
    """The run on screen and those that can stand beside it, the most telling first. sentence: how many there are."""

    current: ComparableRun
    others: list[ComparableRun]
    sentence: str


def comparable_runs(store: TraceStore, trace_id: str, own_ids: Sequence[str]) -> ComparableRuns:
    """What can be compared with ``trace_id``; the asker names its own runs, of which forgotten ones are left out.

    Other methods come before other settings of the same one. Raises TraceError where ``trace_id`` is not known.
    """
    current, _ = store.get(trace_id)
    wanted = dict.fromkeys([*own_ids, *_recorded_alike(store, current)])
    found = [(other, trace) for other, trace in _finished(store, wanted) if other != trace_id]
    found = [(other, trace) for other, trace in found if _is_comparable(current, trace)]
    found.sort(key=lambda run: run[1].method == current.method)
    labels = run_labels([current, *(trace for _, trace in found)])
    pairs = zip([(trace_id, current), *found], labels, strict=True)
    runs = [_run(store, run_id, trace, label) for (run_id, trace), label in pairs]
    count = len(found)
    text = f"{plural(count, 'other run')} of this prompt and target {'is' if count == 1 else 'are'} here."
    return ComparableRuns(runs[0], runs[1:], text if count else ALONE)


def _recorded_alike(store: TraceStore, current: Trace) -> Iterator[str]:
    """Recorded runs that the manifest says have this prompt and target, so that no others need be read."""
    for recording in store.library:
        if (recording.prompt, recording.target) == (current.prompt.text, current.target.name):
            yield recording.name


def _finished(store: TraceStore, ids: dict[str, None]) -> Iterator[tuple[str, Trace]]:
    for trace_id in ids:
        try:
            trace, is_done = store.get(trace_id)
        except TraceError:
            continue
        if is_done:
            yield trace_id, trace


def _is_comparable(current: Trace, other: Trace) -> bool:
    try:
        check_comparable([current, other])
    except TraceError:
        return False
    return True


def _run(store: TraceStore, run_id: str, trace: Trace, label: str) -> ComparableRun:
    is_own = run_id not in store.library
    title = "your run" if is_own else store.library[run_id].title or run_id
    settings = [*settings_texts(trace), sampling_text(trace.sampling)]
    return ComparableRun(
        id=run_id,
        label=label,
        title=visible(title),
        method=trace.method,
        settings=visible(", ".join(settings)),
        num_tokens=len(trace.output.token_ids),
        speedup=trace.stats.speedup,
        is_own=is_own,
    )
