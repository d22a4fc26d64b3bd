"""A run as a timeline for Perfetto (ui.perfetto.dev) and chrome://tracing: Chrome's trace event format, JSON.

Both lanes, the method's and plain decoding's, start together where the method's prompt pass ends: what stands further
left is further ahead. The record has durations, not clock readings, so the parts of a step stand one after another in
the order of the loop (drafts, verify, commit); ``other``, which really lies between them, comes last. Time spent on
recording is left out, as in every speed figure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from explorer.insight import step_sentence, visible
from explorer.trace import Step, Trace

Event = dict[str, Any]

METHOD, BASELINE = 1, 2  # process ids: one group of lanes each
PROMPT, STEPS, DRAFT, VERIFY, COMMIT, OTHER = range(1, 7)  # thread ids: a lane each
PLAIN = 1
LANES = {
    METHOD: {
        PROMPT: "prompt passes",
        STEPS: "steps",
        DRAFT: "draft passes",
        VERIFY: "verify",
        COMMIT: "commit",
        OTHER: "other",
    },
    BASELINE: {PLAIN: "passes"},
}


def chrome_trace(trace: Trace) -> str:
    """The whole run as JSON text; all its times are milliseconds in the record, microseconds in this format."""
    start = trace.prefill_ms.target + (trace.prefill_ms.drafter or 0.0)
    events = [*_lanes(trace), *_prompt_passes(trace), *_steps(trace, start), *_baseline(trace, start)]
    about = {
        "target": trace.target.name,
        "device": trace.target.device_name,
        "dtype": trace.target.dtype,
        "settings": trace.settings,
        "acceptance": trace.sampling.acceptance,
        "speedup": trace.stats.speedup,
        "how to read": "durations are measured; within a step, parts are laid end to end, 'other' last",
    }
    content = {"displayTimeUnit": "ms", "otherData": about, "traceEvents": events}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _lanes(trace: Trace) -> Iterator[Event]:
    """Names and order of processes and threads; the baseline's only where it ran."""
    names = {METHOD: trace.method, BASELINE: "plain decoding (baseline)"}
    for process, lanes in LANES.items():
        if process == BASELINE and trace.baseline is None:
            continue
        yield _about(process, 0, "process_name", {"name": visible(names[process])})
        yield _about(process, 0, "process_sort_index", {"sort_index": process})
        for lane, name in lanes.items():
            yield _about(process, lane, "thread_name", {"name": name})
            yield _about(process, lane, "thread_sort_index", {"sort_index": lane})


def _about(process: int, lane: int, name: str, arguments: dict[str, Any]) -> Event:
    return {"ph": "M", "pid": process, "tid": lane, "name": name, "args": arguments}


def _prompt_passes(trace: Trace) -> Iterator[Event]:
    count = {"tokens": len(trace.prompt.token_ids)}
    yield _span(METHOD, PROMPT, "target reads the prompt", (0.0, trace.prefill_ms.target), count)
    if trace.prefill_ms.drafter is not None:
        span = (trace.prefill_ms.target, trace.prefill_ms.drafter)
        yield _span(METHOD, PROMPT, "drafter reads the prompt", span, count)
    yield _written(METHOD, trace.prefill_ms.target + (trace.prefill_ms.drafter or 0.0), 1)


def _steps(trace: Trace, at: float) -> Iterator[Event]:
    num_written = 1
    for step in trace.steps:
        yield _whole(trace, step, at)
        end = at
        for lane, name, duration, arguments in _parts(step):
            yield _span(METHOD, lane, name, (end, duration), arguments)
            end += duration
        at += step.ms.total
        num_written += len(step.emitted)
        yield _written(METHOD, at, num_written)


def _whole(trace: Trace, step: Step, at: float) -> Event:
    arguments = {
        "in words": step_sentence(step, trace.vocab),
        "emitted": [_label(trace, token) for token in step.emitted],
        "drafted": step.num_drafted,
        "accepted": step.num_accepted,
        "prefix": step.prefix_len,
    }
    return _span(METHOD, STEPS, f"step {step.index + 1}: +{len(step.emitted)}", (at, step.ms.total), arguments)


def _parts(step: Step) -> Iterator[tuple[int, str, float, dict[str, Any]]]:
    """(lane, name, milliseconds, arguments) of each part, in the order of the loop."""
    for number, duration in enumerate(step.ms.draft, start=1):
        yield DRAFT, f"draft pass {number}", duration, {"step": step.index + 1}
    rows = {"step": step.index + 1, "rows": len(step.tree), "prefix": step.prefix_len}
    yield VERIFY, f"verify {len(step.tree)} rows", step.ms.verify, rows
    kept = {"step": step.index + 1, "rows kept": len(step.path), "rows dropped": len(step.tree) - len(step.path)}
    yield COMMIT, "commit", step.ms.commit, kept
    yield OTHER, "other", step.ms.other, {"step": step.index + 1}


def _baseline(trace: Trace, at: float) -> Iterator[Event]:
    if trace.baseline is None:
        return
    yield _written(BASELINE, at, 1)
    for number, duration in enumerate(trace.baseline.ms_per_token, start=2):
        yield _span(BASELINE, PLAIN, f"token {number}", (at, duration), {})
        at += duration
        yield _written(BASELINE, at, number)


def _span(process: int, lane: int, name: str, span: tuple[float, float], arguments: dict[str, Any]) -> Event:
    """A block of ``span`` = (start, duration) in milliseconds; it ends to the nanosecond where the next one begins."""
    start, end = _microseconds(span[0]), _microseconds(sum(span))
    place = {"ph": "X", "pid": process, "tid": lane, "ts": start, "dur": round(end - start, 3)}
    return place | {"name": name, "cat": LANES[process][lane], "args": arguments}


def _written(process: int, at: float, count: int) -> Event:
    """How many tokens the lane has written so far, the prompt pass's own among them: the race as a curve."""
    place = {"ph": "C", "pid": process, "tid": 0, "ts": _microseconds(at)}
    return place | {"name": "tokens written", "args": {"tokens": count}}


def _microseconds(ms: float) -> float:
    return round(1000 * ms, 3)


def _label(trace: Trace, token: int) -> str:
    found = trace.vocab.get(str(token))
    return visible(found.label) if found else f"#{token}"
