"""Why acceptance is low on these prompts, and what to change: a pure function of recorded runs.

Prompts and pieces of text are ranked by how much of them the drafts held; every miss is counted by its way, by the kind
of token, by its place in the output and by how sure the target was; the drafter's confidence is held against what came;
and explorer.advice draws the conclusion. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.advice import Advice, Other, advise, caution, find
from explorer.calibration import Calibration, pooled_calibrations
from explorer.errors import TraceError
from explorer.insight import miss_clause, own_token_sentence, quote
from explorer.misses import ENDINGS, LABELS, WOULD_HELP, ending_of, rest_sentences
from explorer.plain_steps import is_rest
from explorer.side_by_side import run_labels
from explorer.spots import ACCEPTED, RESTED, Spot, spots
from explorer.tallies import Tally, by_class, by_entropy, by_position, main_miss, tally
from explorer.token_classes import token_text
from explorer.trace import Step, Trace

MIN_SPAN, MAX_SPAN = 8, 40  # tokens of a piece of text
ENDS = ("\n", ".", "!", "?")
PLAIN = "autoregressive"


@dataclass(frozen=True)
class Subject:
    """A run to diagnose. file: where its trace lies, if it does. category: of its question."""

    trace: Trace
    file: str | None = None
    category: str = "all"


@dataclass(frozen=True)
class Ending:
    """A way for passes to end. run, step: the most telling example, the run by its number; sentence tells it."""

    kind: str
    label: str
    count: int
    share: float
    would_help: str
    run: int
    step: int
    sentence: str


@dataclass(frozen=True)
class PromptRow:
    """One run. num_steps, tau: without steps that rested. acceptance as in Tally, over its tokens. worst_step: the
    pass that lost most; sentence: its miss.
    """

    run: int
    method: str
    prompt: str
    category: str
    file: str | None
    num_steps: int
    tau: float | None
    acceptance: float | None
    speedup: float | None
    main_miss: str
    worst_step: int | None
    sentence: str


@dataclass(frozen=True)
class Span:
    """A piece of one run's output. accepted: of its tokens, without those of rests, the share that a draft held."""

    run: int
    method: str
    step: int
    index: int
    num_tokens: int
    accepted: float
    main_miss: str
    text: str


@dataclass(frozen=True)
class MethodDiagnosis:
    """All runs of one method with one choice of settings. verdict: what to do, the most useful first;
    caution: what to say beside it.

    All figures are pooled over the runs, without steps that rested (explorer.plain_steps): rests tells how many did.
    break_even: what a pass cost in passes of plain decoding, in the runs that had a baseline; speedup is tau over it,
    both None where none had one.
    """

    method: str
    label: str
    num_runs: int
    num_steps: int
    num_rests: int
    rests: list[str]
    tau: float | None
    speedup: float | None
    break_even: float | None
    endings: list[Ending]
    by_class: list[Tally]
    by_position: list[Tally]
    by_entropy: list[Tally]
    calibrations: list[Calibration]
    verdict: list[Advice]
    caution: str


@dataclass(frozen=True)
class Diagnosis:
    """The whole: methods in the order they came, prompts and spans with the least acceptance first."""

    methods: list[MethodDiagnosis]
    prompts: list[PromptRow]
    spans: list[Span]


def diagnose(subjects: Sequence[Subject]) -> Diagnosis:
    """Diagnose runs of drafting methods; TraceError, in words, where there is none."""
    used = [subject for subject in subjects if subject.trace.method != PLAIN]
    if not used:
        raise TraceError("nothing was drafted in these runs: diagnose runs of a method that drafts")
    read = [spots(subject.trace) for subject in used]
    groups = _groups(used)
    labels = run_labels([used[numbers[0]].trace for numbers in groups])
    names = {number: label for label, numbers in zip(labels, groups, strict=True) for number in numbers}
    others = [_other(label, [used[i].trace for i in numbers]) for label, numbers in zip(labels, groups, strict=True)]
    asked = [{tuple(used[i].trace.prompt.token_ids) for i in numbers} for numbers in groups]
    methods = []
    for place, numbers in enumerate(groups):
        rivals = [
            other for i, other in enumerate(others) if i != place and other is not None and asked[i] == asked[place]
        ]
        methods.append(_method(labels[place], numbers, used, read, rivals))
    prompts = [_prompt_row(number, names[number], subject, read[number]) for number, subject in enumerate(used)]
    spans = [
        span for number, subject in enumerate(used) for span in _spans(number, names[number], subject, read[number])
    ]
    return Diagnosis(
        methods,
        sorted(prompts, key=lambda row: (row.tau is None, row.tau or 0.0, row.run)),
        sorted(spans, key=lambda span: (span.accepted, -span.num_tokens, span.run, span.index)),
    )


def _groups(subjects: Sequence[Subject]) -> list[list[int]]:
    """Run numbers by target, method, drafter and settings, in the order they came."""
    found: dict[str, list[int]] = {}
    for number, subject in enumerate(subjects):
        trace = subject.trace
        drafter = trace.drafter.name if trace.drafter else None
        key = json.dumps([trace.target.name, trace.method, drafter, trace.settings, trace.sampling.acceptance])
        found.setdefault(key, []).append(number)
    return list(found.values())


def _complete(traces: Iterable[Trace]) -> list[Step]:
    return [step for trace in traces for step in trace.steps if not step.is_cut and not is_rest(step)]


def _tau(steps: Sequence[Step]) -> float | None:
    return 1 + sum(step.num_accepted for step in steps) / len(steps) if steps else None


def _break_even(traces: Iterable[Trace]) -> float | None:
    """What a pass cost in passes of plain decoding, over the runs that had a baseline: tau above it is a gain."""
    timed = [trace for trace in traces if trace.baseline and trace.baseline.ms_per_token and trace.steps]
    passes = [step.ms.total for trace in timed for step in trace.steps if not is_rest(step)]
    plain = [ms for trace in timed if trace.baseline for ms in trace.baseline.ms_per_token]
    if not passes or not sum(passes) or not sum(plain):
        return None
    return (sum(passes) / len(passes)) / (sum(plain) / len(plain))


def _other(label: str, traces: Sequence[Trace]) -> Other | None:
    tau, break_even = _tau(_complete(traces)), _break_even(traces)
    return None if tau is None else Other(label, tau, tau / break_even if break_even else None)


def _method(
    label: str, numbers: Sequence[int], subjects: Sequence[Subject], read: Sequence[list[Spot]], rivals: list[Other]
) -> MethodDiagnosis:
    traces = [subjects[number].trace for number in numbers]
    steps, own = _complete(traces), [spot for number in numbers for spot in read[number]]
    rests = [step for trace in traces for step in trace.steps if is_rest(step)]
    tau, break_even, calibrations = _tau(steps), _break_even(traces), pooled_calibrations(traces)
    findings = find(traces[0].method, traces[0].settings, steps, break_even)
    return MethodDiagnosis(
        method=traces[0].method,
        label=label,
        num_runs=len(traces),
        num_steps=len(steps),
        num_rests=len(rests),
        rests=rest_sentences(rests),
        tau=tau,
        speedup=tau / break_even if tau and break_even else None,
        break_even=break_even,
        endings=_endings(numbers, subjects),
        by_class=by_class(own),
        by_position=by_position(own),
        by_entropy=by_entropy(own),
        calibrations=calibrations,
        verdict=[] if findings is None else advise(findings, calibrations, rivals),
        caution=caution(len(steps)),
    )


def _endings(numbers: Sequence[int], subjects: Sequence[Subject]) -> list[Ending]:
    """As explorer.misses counts them, over several runs."""
    found: dict[str, list[tuple[int, Step]]] = {}
    for number in numbers:
        for step in _complete([subjects[number].trace]):
            found.setdefault(ending_of(step), []).append((number, step))
    total = sum(map(len, found.values()))
    endings = []
    for kind in sorted(found, key=lambda kind: (-len(found[kind]), ENDINGS.index(kind))):
        number, step = max(found[kind], key=lambda pair: (pair[1].next_prob or 0.0, -pair[0], -pair[1].index))
        sentence = own_token_sentence(step, subjects[number].trace.vocab)
        count = len(found[kind])
        endings.append(Ending(kind, LABELS[kind], count, count / total, WOULD_HELP[kind], number, step.index, sentence))
    return endings


def _prompt_row(number: int, label: str, subject: Subject, found: Sequence[Spot]) -> PromptRow:
    trace = subject.trace
    steps = _complete([trace])
    worst = min(
        (step for step in steps if step.num_drafted),
        key=lambda step: (step.num_accepted, -(step.next_prob or 0.0), step.index),
        default=None,
    )
    return PromptRow(
        run=number,
        method=label,
        prompt=trace.prompt.text,
        category=subject.category,
        file=subject.file,
        num_steps=len(steps),
        tau=_tau(steps),
        acceptance=tally("", found).acceptance,
        speedup=trace.stats.speedup,
        main_miss=main_miss(found),
        worst_step=None if worst is None else worst.index,
        sentence="" if worst is None else _lost(worst, trace),
    )


def _lost(step: Step, trace: Trace) -> str:
    """The target's own token and how the draft missed it, in a few words."""
    clause = miss_clause(step) or "followed a path that was accepted to its end"
    return f"{quote(trace.vocab, step.next_token)} {clause}"


def _spans(number: int, label: str, subject: Subject, found: Sequence[Spot]) -> list[Span]:
    """The output in pieces: lines and sentences, short ones joined with the next, long ones cut."""
    vocab = subject.trace.vocab
    texts = [token_text(vocab, spot.token) for spot in found]
    pieces, start = list[tuple[int, int]](), 0
    for end, text in enumerate(texts, start=1):
        length = end - start
        if length >= MAX_SPAN or (length >= MIN_SPAN and ("\n" in text or text.rstrip().endswith(ENDS))):
            pieces.append((start, end))
            start = end
    if len(texts) - start < MIN_SPAN and pieces:
        start = pieces.pop()[0]
    if start < len(texts):
        pieces.append((start, len(texts)))
    spans = []
    for first, last in pieces:
        inside = found[first:last]
        tested = [spot for spot in inside if spot.ending != RESTED]
        if not tested:
            continue
        share = sum(spot.ending == ACCEPTED for spot in tested) / len(tested)
        text = "".join(texts[first:last])
        spans.append(Span(number, label, inside[0].step, inside[0].index, len(inside), share, main_miss(inside), text))
    return spans
