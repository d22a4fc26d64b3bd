"""Two runs of one prompt, aligned by output token: where their texts part, and which steps of one gained on the other.

Gains are counted up to where the texts part, because after that the tokens have nothing in common. In passes they say
how good the drafts were; in milliseconds, what it was worth, both runs' noise included. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.insight import percent, plural, quote
from explorer.side_by_side import check_comparable, run_labels
from explorer.timeline import arrivals_ms, chosen_after, num_passes, root_index
from explorer.trace import Trace

NEAR_TIE = 0.01  # logit gap below which a pass of other rows may round to the other choice


@dataclass(frozen=True)
class Split:
    """The first output token in which two runs differ; None stands for a run that had ended.

    gaps: the target's top-2 logit gap at that place as each run's record has it, None where it does not.
    """

    index: int
    tokens: tuple[int | None, int | None]
    gaps: tuple[float | None, float | None]
    sentence: str


@dataclass(frozen=True)
class StepGain:
    """One step of the first run against the passes of the second that gave the same tokens.

    start: the output index of its root; its tokens are start + 1 .. start + num_tokens. gain_passes: passes of the
    other run that ended inside these tokens, minus this one; gain_ms the same in time. Positive: this run gained.
    sentence: both sides' passes and times, in words.
    """

    step: int
    start: int
    num_tokens: int
    gain_passes: int
    gain_ms: float
    sentence: str


@dataclass(frozen=True)
class TraceDiff:
    """Two runs aligned; ``labels`` names them, first and second.

    num_common: output tokens that are equal from the start. lead_passes, lead_ms [num_common]: how many passes, how
    much time after the first run the second one had each token (negative: before). gains: the first run's steps whose
    tokens are all common. best, worst: the steps that gained and lost most time, None where no step is common.
    """

    labels: tuple[str, str]
    num_common: int
    split: Split | None
    lead_passes: list[int]
    lead_ms: list[float]
    gains: list[StepGain]
    best: int | None
    worst: int | None
    sentences: list[str]


def diff_traces(first: Trace, second: Trace) -> TraceDiff:
    """Align two runs; raises TraceError, in words, where they answer different prompts or have different targets."""
    check_comparable([first, second])
    labels = tuple(run_labels([first, second]))
    tokens, others = first.output.token_ids, second.output.token_ids
    pairs = zip(tokens, others, strict=False)
    num_common = next((i for i, (one, other) in enumerate(pairs) if one != other), min(len(tokens), len(others)))
    split = _split(first, second, num_common, labels)
    passes, other_passes = num_passes(first), num_passes(second)
    times, other_times = arrivals_ms(first), arrivals_ms(second)
    gains = _gains(first, num_common, (other_passes, other_times), labels[1])
    return TraceDiff(
        labels=(labels[0], labels[1]),
        num_common=num_common,
        split=split,
        lead_passes=[other - one for one, other in zip(passes[:num_common], other_passes, strict=False)],
        lead_ms=[other - one for one, other in zip(times[:num_common], other_times, strict=False)],
        gains=gains,
        best=max(gains, key=lambda gain: gain.gain_ms).step if gains else None,
        worst=min(gains, key=lambda gain: gain.gain_ms).step if gains else None,
        sentences=_sentences(labels, split, num_common, ((passes, times), (other_passes, other_times))),
    )


def logit_gap(trace: Trace, index: int) -> float | None:
    """The target's top-2 logit gap where it chose output token ``index``, as far as the record has it.

    A step's row keeps the target's favourites with their probabilities, whose log ratio is the gap; the prompt pass
    keeps none. The baseline's own gap is there where the run left it.
    """
    divergence = trace.baseline.first_divergence if trace.baseline else None
    if divergence is not None and divergence.index == index:
        return divergence.gap
    place = chosen_after(trace, index)
    if place is None:
        return None
    step = trace.steps[place.step]
    top = step.tree.target_top[step.path[place.position]]
    if not top or len(top) < 2 or not (top[0][1] > 0 and top[1][1] > 0):
        return None
    return math.log(top[0][1] / top[1][1])


def _split(first: Trace, second: Trace, index: int, labels: Sequence[str]) -> Split | None:
    tokens, others = first.output.token_ids, second.output.token_ids
    if index == len(tokens) == len(others):
        return None
    pair = (tokens[index] if index < len(tokens) else None, others[index] if index < len(others) else None)
    gaps = (logit_gap(first, index), logit_gap(second, index))
    if pair[0] is None or pair[1] is None:
        ended = labels[0] if pair[0] is None else labels[1]
        return Split(index, pair, gaps, f"The texts are equal as far as {ended} goes: it ends after {index} tokens.")
    one, other = quote(first.vocab, pair[0]), quote(second.vocab, pair[1])
    text = f"The texts part at token {index + 1}: {labels[0]} writes {one}, {labels[1]} {other}."
    return Split(index, pair, gaps, f"{text} {_why(first, second, index, gaps)}")


def _why(first: Trace, second: Trace, index: int, gaps: tuple[float | None, float | None]) -> str:
    """What the records say of the reason."""
    rules = {first.sampling.acceptance, second.sampling.acceptance}
    if rules != {"greedy"}:
        return "At least one of them chose by chance or by plausibility, so they need not agree."
    known = [gap for gap in gaps if gap is not None]
    if not known:
        return "How close the choice was is not in the records."
    gap, favourites = min(known), _favourites(first, index) or _favourites(second, index)
    text = f"The target's first two choices there{favourites} lie {gap:.2g} logits apart"
    if gap <= NEAR_TIE:
        return f"{text}: a near tie, which a pass of another size may round the other way."
    return f"{text}: too far for rounding, so something else differs between the runs."


def _favourites(trace: Trace, index: int) -> str:
    place = chosen_after(trace, index)
    step = None if place is None else trace.steps[place.step]
    top = step.tree.target_top[step.path[place.position]] if step is not None and place is not None else None
    if not top or len(top) < 2:
        return ""
    return ", " + " and ".join(f"{quote(trace.vocab, token)} ({percent(prob)})" for token, prob in top[:2]) + ","


def _gains(first: Trace, num_common: int, other: tuple[list[int], list[float]], label: str) -> list[StepGain]:
    passes, times = other
    found = []
    for step in first.steps:
        start = root_index(first, step)
        end = start + len(step.emitted)
        if end >= num_common:
            break
        their_passes, their_ms = passes[end] - passes[start], times[end] - times[start]
        gain = their_ms - step.ms.total
        sentence = (
            f"Step {step.index + 1} wrote {plural(len(step.emitted), 'token')} in {step.ms.total:.0f} ms; {label} took "
            f"{plural(their_passes, 'pass', 'passes')} and {their_ms:.0f} ms for the same: {abs(gain):.0f} ms "
            f"{'gained' if gain >= 0 else 'lost'}."
        )
        found.append(StepGain(step.index, start, len(step.emitted), their_passes - 1, gain, sentence))
    return found


def _sentences(
    labels: Sequence[str],
    split: Split | None,
    num_common: int,
    runs: tuple[tuple[list[int], list[float]], tuple[list[int], list[float]]],
) -> list[str]:
    """What is equal, and who needed how much for it."""
    found = [split.sentence if split else f"Both write the same {plural(num_common, 'token')}."]
    if num_common < 2:
        return found
    last = num_common - 1
    (passes, times), (other_passes, other_times) = runs
    found.append(
        f"For the {num_common} tokens they share, {labels[0]} needed {plural(passes[last], 'pass', 'passes')} and "
        f"{times[last] / 1000:.2f} s, {labels[1]} {plural(other_passes[last], 'pass', 'passes')} and "
        f"{other_times[last] / 1000:.2f} s."
    )
    return found
