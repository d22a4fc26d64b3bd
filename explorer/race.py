"""Runs of one prompt and plain decoding as lanes of measured time on one axis, as a race that can be replayed.

The zero of every lane is the end of its prompt passes; recording is left out. The lanes were measured one after the
other and are only replayed together. Inside a step the parts stand in the order of the loop: drafts, verify, the rest.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.insight import plural, visible
from explorer.side_by_side import PLAIN_LABEL, check_comparable, run_labels
from explorer.timeline import arrivals_ms, plain_arrivals_ms
from explorer.trace import Baseline, Step, Trace

EVEN = 0.05  # a ratio this near to 1 is called even: one paired run does not tell them apart
FACTORS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01)  # of slow motion
READABLE_MS = 120.0  # a token should stay alone on the screen at least so long


@dataclass(frozen=True)
class Lane:
    """One runner. trace: which of the given traces it belongs to; ``is_baseline`` for the plain lane of that run.

    spans: (kind, ms) one after another from 0; kinds are draft (each pass of its own), verify and other, for the
    baseline plain (a pass a token). arrivals: (ms, output tokens there are then), the first at 0. prefill_ms: what the
    prompt passes took before that, 0 for a baseline, whose record does not have them. tokens: its output, as far as the
    record has it; text_note says why it stops early. result: its speed against its own plain lane, in a few words;
    is_slower: below 1.
    """

    label: str
    trace: int
    is_baseline: bool
    prefill_ms: float
    spans: list[tuple[str, float]]
    arrivals: list[tuple[float, int]]
    tokens: list[int]
    text_note: str
    result: str
    is_slower: bool

    @property
    def total_ms(self) -> float:
        return self.arrivals[-1][0]

    @property
    def num_tokens(self) -> int:
        return self.arrivals[-1][1]


@dataclass(frozen=True)
class SlowMotion:
    """factor: replay at this share of the real speed, so that single tokens can be followed; sentence: what that is.

    factors: the shares to choose from.
    """

    factor: float
    sentence: str
    factors: tuple[float, ...] = FACTORS


@dataclass(frozen=True)
class Race:
    """All lanes; duration_ms is that of the longest.

    leads: (ms, index of the lane that leads from then on): the one with most tokens, of equals the earlier. calls: (ms,
    what to say from then on), the first at 0. verdicts: for each trace, how fast it was against its own baseline and
    why. sentences: who leads, who ends first. notes: what makes lanes less comparable.
    """

    lanes: list[Lane]
    duration_ms: float
    leads: list[tuple[float, int]]
    calls: list[tuple[float, str]]
    verdicts: list[str]
    sentences: list[str]
    notes: list[str]
    slow_motion: SlowMotion


def race(traces: Sequence[Trace]) -> Race:
    """The race of these runs and, as the last lane, the first baseline among them.

    Raises TraceError, in words, where they answer different prompts or have different targets.
    """
    check_comparable(traces)
    labels = run_labels(traces)
    lanes = [_lane(trace, label, index) for index, (trace, label) in enumerate(zip(traces, labels, strict=True))]
    for index, baseline in _baselines(traces)[:1]:
        lanes.append(_plain_lane(traces[index], baseline, index))
    leads = _leads(lanes)
    return Race(
        lanes=lanes,
        duration_ms=max(lane.total_ms for lane in lanes),
        leads=leads,
        calls=_calls(lanes, leads),
        verdicts=[speed_sentence(trace) for trace in traces],
        sentences=_sentences(lanes, leads),
        notes=[*_notes(traces), *_plain_notes(traces, labels)],
        slow_motion=_slow_motion(lanes),
    )


def speed_sentence(trace: Trace) -> str:
    """How fast a run was against its own baseline, and why: what a step gave, what it cost in plain tokens.

    The parts multiply to the speedup, so a cut last step is among them; where it makes a difference, that is said.
    """
    speedup, baseline = trace.stats.speedup, trace.baseline
    if speedup is None or baseline is None or not baseline.tokens_per_second or not trace.steps:
        return "No speedup: " + ("this run has no baseline." if baseline is None else "nothing was measured yet.")
    plain_ms = 1000 / baseline.tokens_per_second
    num_steps = len(trace.steps)
    gave, step_ms = (
        (len(trace.output.token_ids) - 1) / num_steps,
        sum(step.ms.total for step in trace.steps) / num_steps,
    )
    verify, draft = (sum(values) / num_steps / plain_ms for values in zip(*map(_costs, trace.steps), strict=True))
    cost = step_ms / plain_ms
    head = f"{speedup:.2f} × plain speed" + _tone(speedup)
    facts = (
        f"a step cost {cost:.2f} plain tokens' time ({step_ms:.0f} ms against {plain_ms:.0f} ms) and gave {gave:.2f} "
        f"tokens{_with_cut(trace, gave)}; its verify pass alone cost {verify:.2f}"
    )
    facts += f", drafting {draft:.2f}" if draft else ""
    return f"{head}: {facts}.{_reason(speedup, gave, verify, draft, cost)}"


def _with_cut(trace: Trace, gave: float) -> str:
    """Why this mean is not the run's tokens per pass: that one counts whole steps."""
    tau = trace.stats.mean_acceptance_length
    if tau is None or f"{tau:.2f}" == f"{gave:.2f}":
        return ""
    return f" with the last step, which was cut short ({tau:.2f} tokens per pass without it)"


def _tone(speedup: float) -> str:
    if abs(speedup - 1) < EVEN:
        return ", about even"
    return ", faster" if speedup > 1 else ", slower"


def _reason(speedup: float, gave: float, verify: float, draft: float, cost: float) -> str:
    """Why a run is not faster: what would have to change."""
    if speedup >= 1:
        return ""
    if gave <= verify:
        why = "The pass alone costs more than it gives here: fewer rows, or more of them accepted"
    elif gave <= verify + draft:
        why = "The pass would pay, drafting uses up the gain: a cheaper draft, or more of it accepted"
    else:
        why = "Pass and draft would pay, the work around them uses up the gain"
    return f" {why}. To break even it would have to give {cost:.2f}."


def _costs(step: Step) -> tuple[float, float]:
    return step.ms.verify, sum(step.ms.draft)


def _lane(trace: Trace, label: str, index: int) -> Lane:
    times = arrivals_ms(trace)
    last = {time: count for count, time in enumerate(times, start=1)}  # all tokens of a step come at once
    prefill = trace.prefill_ms.target + (trace.prefill_ms.drafter or 0.0)
    spans = [span for step in trace.steps for span in _spans(step)]
    speedup = trace.stats.speedup
    result = "" if speedup is None else f"{speedup:.2f} × its plain run"
    return Lane(
        label=label,
        trace=index,
        is_baseline=False,
        prefill_ms=prefill,
        spans=spans,
        arrivals=list(last.items()),
        tokens=list(trace.output.token_ids),
        text_note="",
        result=result,
        is_slower=speedup is not None and speedup < 1,
    )


def _spans(step: Step) -> Iterator[tuple[str, float]]:
    yield from (("draft", ms) for ms in step.ms.draft)
    yield "verify", step.ms.verify
    yield "other", step.ms.commit + step.ms.other


def _baselines(traces: Sequence[Trace]) -> list[tuple[int, Baseline]]:
    return [(index, trace.baseline) for index, trace in enumerate(traces) if trace.baseline is not None]


def _plain_lane(trace: Trace, baseline: Baseline, index: int) -> Lane:
    times = plain_arrivals_ms(baseline.ms_per_token)
    spans = [("plain", ms) for ms in baseline.ms_per_token]
    arrivals = [(time, count) for count, time in enumerate(times, start=1)]
    tokens, note = _plain_tokens(trace, baseline)
    return Lane(PLAIN_LABEL, index, True, 0.0, spans, arrivals, tokens, note, "", False)


def _plain_tokens(trace: Trace, baseline: Baseline) -> tuple[list[int], str]:
    """The baseline's output as far as it can be told from the run's own."""
    if baseline.output_equal:
        return list(trace.output.token_ids), ""
    parted = baseline.first_divergence
    if parted is None:
        return [], "The record keeps the times of this lane, not its text."
    ahead = [] if parted.baseline_token is None else [parted.baseline_token]
    return trace.output.token_ids[
        : parted.index
    ] + ahead, "From here on the texts differ; the record keeps only the times of this lane."


def _leads(lanes: Sequence[Lane]) -> list[tuple[float, int]]:
    """Who has most tokens, from when on; nobody before the first step ends."""
    events = sorted((ms, index, count) for index, lane in enumerate(lanes) for ms, count in lane.arrivals[1:])
    found, most = list[tuple[float, int]](), 1
    for ms, index, count in events:
        if count > most:
            most = count
            if not found or found[-1][1] != index:
                found.append((ms, index))
    return found


def _sentences(lanes: Sequence[Lane], leads: Sequence[tuple[float, int]]) -> list[str]:
    if not leads:
        return ["No step was made: there is no race to see."]
    changes = len(leads) - 1
    ms, leader = leads[-1]
    name = lanes[leader].label
    text = f"{name} leads from its first tokens on."
    if changes:
        text = f"The lead changes {'once' if changes == 1 else f'{changes} times'}; "
        text += f"{name} takes it for good after {ms / 1000:.2f} s."
    num_tokens = min(lane.num_tokens for lane in lanes)
    ends = [(next(ms for ms, count in lane.arrivals if count >= num_tokens), lane.label) for lane in lanes]
    order = sorted(ends)
    times = "; ".join(f"{label} {ms / 1000:.2f} s" for ms, label in order)
    return [text, f"The first {plural(num_tokens, 'token')} took: {times}."]


def _calls(lanes: Sequence[Lane], leads: Sequence[tuple[float, int]]) -> list[tuple[float, str]]:
    """What a reporter would say while the clock runs."""
    found = [(0.0, "Every lane has the first token, from its prompt pass: nobody leads yet.")]
    for number, (ms, lane) in enumerate(leads):
        when = f" from {ms / 1000:.2f} s on" if number else ""
        found.append((ms, f"{lanes[lane].label} leads{when}."))
    return found


def _notes(traces: Sequence[Trace]) -> list[str]:
    """What makes these lanes less comparable, and that they did not run together."""
    first = traces[0].target
    found = [
        f"Recorded on {visible(first.device_name)}, {visible(first.dtype)}, batch 1, one lane after the other; prompt "
        "passes are left out."
    ]
    if any((other.target.device_name, other.target.dtype) != (first.device_name, first.dtype) for other in traces):
        found = [
            "These runs were recorded on different devices or in different precisions: their times do not compare."
        ]
    if len({tuple(trace.output.token_ids) for trace in traces}) > 1:
        found.append("The runs wrote different texts: a token of one lane is not the same word as that of another.")
    return found


def _plain_notes(traces: Sequence[Trace], labels: Sequence[str]) -> Iterator[str]:
    """Plain decoding is measured beside every run, and never takes the same time twice."""
    measured = _baselines(traces)
    if len(measured) > 1:
        each = [1000 / base.tokens_per_second for _, base in measured if base.tokens_per_second]
        spread = f": {min(each):.0f} to {max(each):.0f} ms a token" if each else ""
        first = labels[measured[0][0]]
        yield f"Plain decoding was measured anew beside each run{spread}; its lane is the one beside {first}."


def _slow_motion(lanes: Sequence[Lane]) -> SlowMotion:
    """The fastest replay in which the quickest lane still leaves each token READABLE_MS on the screen."""
    paces = [lane.total_ms / (lane.num_tokens - 1) for lane in lanes if lane.num_tokens > 1]
    pace = min(paces, default=READABLE_MS)
    factor = next((factor for factor in FACTORS if pace / factor >= READABLE_MS), FACTORS[-1])
    text = "In real time" if factor == 1 else f"At {factor:g} × the real speed"
    longest = max(lane.total_ms for lane in lanes) / factor / 1000
    return SlowMotion(
        factor, f"{text} the quickest lane writes a token every {pace / factor:.0f} ms; the race lasts {longest:.1f} s."
    )
