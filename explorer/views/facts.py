"""The headline numbers of a run as words: value, label, exact meaning."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.adapter_words import adapter_sentence, agreement_text
from explorer.insight import percent
from explorer.rules import rule_label
from explorer.trace import Trace

_NOT_COMPARED = {"rejection": "sampled: no single right output", "typical": rule_label("typical")}
EVEN = 0.05  # a ratio this near to 1 is neither praised nor marked: one paired run does not tell them apart


@dataclass(frozen=True)
class Fact:
    """One number of the bar above the tree: ``tone`` is good, bad or plain; ``help`` says exactly what it is."""

    name: str
    value: str
    label: str
    note: str
    tone: str
    help: str


def facts(trace: Trace) -> list[Fact]:
    """The headline numbers of a run, in order, from ``trace.stats`` and what was measured."""
    return [
        _per_pass(trace),
        _speedup(trace),
        _speed(trace),
        _first_token_time(trace),
        _drafter(trace),
        _equality(trace),
        *_distance(trace),
    ]


def _per_pass(trace: Trace) -> Fact:
    mean = trace.stats.mean_acceptance_length
    return Fact(
        "per_pass",
        "–" if mean is None else f"{mean:.2f}",
        "tokens per pass",
        "" if mean is None else f"{mean - 1:.2f} without the target's own",
        "plain",
        "Tokens per target pass: mean over complete steps of accepted draft tokens plus the target's own token (tau).",
    )


def _speedup(trace: Trace) -> Fact:
    explanation = "Tokens per second over those of the autoregressive lane, prompt pass excluded; not a median of runs."
    ratio = trace.stats.speedup
    if ratio is None:
        note = "no baseline in this run" if trace.baseline is None else "after the first step"
        return Fact("speedup", "–", "speedup", note, "plain", explanation)
    tone = "plain" if abs(ratio - 1) < EVEN else "good" if ratio > 1 else "bad"
    label, note = ("plain speed", "slower: measured, one run") if ratio < 1 else ("speedup", "measured, one paired run")
    return Fact("speedup", f"{ratio:.2f}×", label, note, tone, explanation)


def _speed(trace: Trace) -> Fact:
    speed, baseline, target = trace.stats.tokens_per_second, trace.baseline, trace.target
    graphs = ", passes as CUDA graphs" if target.execution == "graphed" else ""
    has_both = baseline is not None and baseline.tokens_per_second is not None
    return Fact(
        "speed",
        "–" if speed is None else f"{speed:.1f}",
        "tokens/s",
        f"{baseline.tokens_per_second:.1f} autoregressive" if baseline and has_both else "",
        "plain",
        f"Batch 1, {target.dtype}, {target.device_name}{graphs}; recording and the prompt pass are not counted.",
    )


def _first_token_time(trace: Trace) -> Fact:
    total = trace.prefill_ms.target + (trace.prefill_ms.drafter or 0.0)
    note = f"prompt of {len(trace.prompt.token_ids)} tokens"
    value = f"{total / 1000:.2f} s" if total >= 1000 else f"{total:.0f} ms"
    return Fact("first_token", value, "first token", note, "plain", "The prompt passes of target and drafter.")


def _drafter(trace: Trace) -> Fact:
    explanation = "Parameters of the drafter alone; the target's embeddings and LM head are not counted."
    if trace.drafter is None:
        return Fact("drafter", "none", "drafter", "nothing was trained", "plain", explanation)
    count, share = trace.drafter.num_parameters, trace.drafter.num_parameters / max(trace.target.num_parameters, 1)
    note = f"{trace.drafter.num_bytes / 1e6:.1f} MB, {percent(share)} of target"
    return Fact("drafter", f"{count / 1e6:.1f} M", "drafter", note, "plain", explanation)


def _equality(trace: Trace) -> Fact:
    explanation = "The output compared token by token with the autoregressive lane of the same run."
    baseline = trace.baseline
    if baseline is None or baseline.output_equal is None:
        pending = _NOT_COMPARED.get(trace.sampling.acceptance, "at the end of the run")
        note = "no baseline in this run" if baseline is None else pending
        return Fact("equal", "–", "not compared", note, "plain", explanation)
    if trace.target.adapter is not None:
        explanation += f" That lane decodes with the same target: {adapter_sentence(trace.target.adapter)}."
    if baseline.output_equal:
        note = "token for token" if trace.target.adapter is None else "of the adapted target"
        return Fact("equal", "✓ equal", "to greedy", note, "good", explanation)
    split = baseline.first_divergence
    note = "" if split is None else f"first differs at token {split.index + 1}"
    if split is not None and split.gap is not None:
        note += f", logit gap {split.gap:.2g}"
    return Fact("equal", "✗ differs", "from greedy", note, "bad", explanation)


def _distance(trace: Trace) -> list[Fact]:
    """Of a target that its drafter adapts, how far it is from the original."""
    adapter = trace.target.adapter
    if adapter is None:
        return []
    explanation = (
        f"The drafter {adapter.name} adapts the target. Held-out tokens at which the adapted target and "
        f"{adapter.original} put the same token first, and the mean KL between their distributions, measured at "
        f"training over {adapter.num_tokens:,} tokens."
    )
    note = f"mean KL {adapter.mean_kl:.2g}"
    return [Fact("adapted", agreement_text(adapter), "as the original", note, "plain", explanation)]
