"""The trace around the steps: what is known before the first, and what follows from all of them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from explorer.devices import device_name
from explorer.engine import Decoding
from explorer.metrics import compute_stats, tokens_per_second
from explorer.run_setup import Run
from explorer.text import decode
from explorer.trace import Baseline, Divergence, Label, Output, SamplingRecord, TargetRecord, Trace


@dataclass(frozen=True)
class Lane:
    """The finished autoregressive lane: its tokens, the top-2 logit gap and the milliseconds of each."""

    output: list[int]
    gaps: list[float]
    ms_per_token: list[float]

    @property
    def speed(self) -> float | None:
        """Tokens per second, the prompt pass left out."""
        return tokens_per_second(len(self.output), sum(self.ms_per_token))


def begin_trace(run: Run, decoding: Decoding, lane: Lane | None) -> Trace:
    """The trace before its first step; valid as it is, as a run that was cancelled there."""
    first = decoding.output[0]
    sampling = run.options.sampling
    return Trace(
        method=run.request.method,
        settings=run.settings,
        sampling=SamplingRecord(sampling.temperature, sampling.top_p, sampling.top_k, sampling.seed, sampling.rule),
        target=_target_record(run),
        drafter=run.drafter,
        prompt=run.prompt,
        vocab=run.models.labeler.labels([*run.prompt.token_ids, first]),
        prefill_ms=decoding.prefill_ms,
        first_token=first,
        steps=[],
        output=Output([first], decode(run.models.target.tokenizer, [first])),
        stop="cancelled",
        baseline=None if lane is None else Baseline(None, None, lane.speed, lane.ms_per_token),
        stats=compute_stats([], 1, None),
    )


def finish_trace(run: Run, trace: Trace, decoding: Decoding, lane: Lane | None) -> Trace:
    """``trace`` with its steps and labels, completed by what only the end tells."""
    assert decoding.stop is not None
    baseline, vocab = trace.baseline, trace.vocab
    if lane is not None and baseline is not None and run.options.sampling.is_greedy:
        divergence = find_divergence(decoding.output, lane.output, lane.gaps)
        baseline = dataclasses.replace(baseline, output_equal=divergence is None, first_divergence=divergence)
        if divergence:
            vocab = vocab | _divergence_labels(run, divergence)
    return dataclasses.replace(
        trace,
        target=_target_record(run),  # a pass that could not be captured changes how it runs
        vocab=vocab,
        output=Output(decoding.output, decode(run.models.target.tokenizer, decoding.output)),
        stop=decoding.stop,
        baseline=baseline,
        stats=compute_stats(trace.steps, len(decoding.output), lane.speed if lane else None),
    )


def find_divergence(output: list[int], baseline: list[int], gaps: list[float]) -> Divergence | None:
    """The first place where two outputs differ, None where they are equal.

    gaps: the baseline's top-2 logit gap per token; a tiny one means that rounding decided.
    """
    for index in range(max(len(output), len(baseline))):
        token = output[index] if index < len(output) else None
        expected = baseline[index] if index < len(baseline) else None
        if token != expected:
            return Divergence(index, token, expected, gaps[index] if index < len(gaps) else None)
    return None


def _divergence_labels(run: Run, divergence: Divergence) -> dict[str, Label]:
    shown = (divergence.token, divergence.baseline_token)
    return run.models.labeler.labels(token for token in shown if token is not None)


def _target_record(run: Run) -> TargetRecord:
    target = run.models.target
    return TargetRecord(
        name=target.name,
        dtype=str(target.dtype).removeprefix("torch."),
        device=target.device.type,
        device_name=device_name(target.device, target.places),
        num_parameters=target.num_parameters,
        backend=target.backend,
        execution=target.execution,
        cache=run.options.cache,
        numerics=target.numerics,
        adapter=run.models.adapter,
    )
