"""The benchmark: many prompts, all methods interleaved prompt by prompt, so that a drifting machine hits all alike."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from explorer.bench_report import AUTOREGRESSIVE, GENERATE
from explorer.checkpoints.target import load_reference
from explorer.config import Sampling
from explorer.engine import Decoding
from explorer.loading import ModelStore
from explorer.measurement import Measurement, ResultsFile
from explorer.metrics import acceptance_histogram, depth_counts, head_counts
from explorer.questions import Question
from explorer.run_setup import Run, check_request, prepare_run
from explorer.runner import warm_decoding
from explorer.runner_events import Notice, RunRequest, Status, drain
from explorer.text import render_prompt
from explorer.trace import Step

NUM_GENERATE_WARM_UP = 4

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """One measurement was made (or found): how far the benchmark is, and what had to be said."""

    num_done: int
    num_all: int
    measurement: Measurement | None
    notices: tuple[str, ...] = ()


def run_bench(
    requests: list[RunRequest], questions: list[Question], results: ResultsFile, has_generate: bool
) -> Iterator[Progress]:
    """Measure every request (one a method) on every question; the lanes take turns at going first.

    The requests' prompts are replaced by the questions'. Measurements already in ``results`` are not made again.
    """
    bench = _Bench()
    lanes = [*([GENERATE] if has_generate else []), *(request.method for request in requests)]
    by_method = {request.method: request for request in requests}
    for request in requests:  # what does not load or resolve is said before anything is measured
        bench.prepare(dataclasses.replace(request, prompt=questions[0].text))
    num_all, num_done = len(questions) * len(lanes), 0
    for number, question in enumerate(questions):
        turn = number % len(lanes)
        for lane in lanes[turn:] + lanes[:turn]:
            num_done += 1
            if (question.id, lane) in results:
                yield Progress(num_done, num_all, None)
                continue
            request = dataclasses.replace(by_method.get(lane, requests[0]), prompt=question.text)
            measured = bench.generate(request, question) if lane == GENERATE else bench.decode(request, question)
            results.add(measured)
            yield Progress(num_done, num_all, measured, tuple(bench.take_notices()))


class _Bench:
    """The models of one benchmark."""

    def __init__(self) -> None:
        self._store = ModelStore()
        self._reference: Any = None
        self._notices: dict[str, None] = {}
        self._told = 0

    def take_notices(self) -> list[str]:
        """What was clamped, each sentence once."""
        new = list(self._notices)[self._told :]
        self._told = len(self._notices)
        return new

    def decode(self, request: RunRequest, question: Question) -> Measurement:
        """One of our methods, warmed up."""
        run = self.prepare(request)
        decoding = warm_decoding(run, run.method)
        decoding.prefill()
        steps = list(decoding.steps())
        return to_measurement(run, question, decoding, steps)

    def generate(self, request: RunRequest, question: Question) -> Measurement:
        """transformers' generate: the prompt pass is what a run for one token costs, and is taken off."""
        models = self._finish(self._store.models(request), request)
        target = models.target
        if self._reference is None:
            self._reference = load_reference(self._store.preset(request).source, target.device, target.dtype)
        ids = render_prompt(target.tokenizer, question.text, request.system, request.use_chat_template).token_ids
        self._timed(target, ids, NUM_GENERATE_WARM_UP, request)
        prefill_ms, _ = self._timed(target, ids, 1, request)
        total_ms, output = self._timed(target, ids, request.max_new_tokens, request)
        is_stopped = output[-1] in target.stop_ids and not request.ignore_stop
        return Measurement(
            question_id=question.id,
            category=question.category,
            method=GENERATE,
            output=output,
            stop="eos" if is_stopped else "max_new_tokens",
            num_prompt_tokens=len(ids),
            prefill_ms=prefill_ms,
            decode_ms=max(total_ms - prefill_ms, 0.0),
            num_steps=len(output) - 1,
        )

    def _timed(self, target: Any, ids: list[int], num_tokens: int, request: RunRequest) -> tuple[float, list[int]]:
        inputs = torch.tensor([ids], device=target.device)
        stops = None if request.ignore_stop else sorted(target.stop_ids)
        how = _generate_options(request.sampling)
        torch.manual_seed(request.sampling.seed)
        started = time.perf_counter()
        with torch.inference_mode():
            written = self._reference.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=num_tokens,
                eos_token_id=stops,
                **how,
            )
        output: list[int] = written[0, len(ids) :].tolist()  # waits for the device
        return (time.perf_counter() - started) * 1e3, output

    def prepare(self, request: RunRequest) -> Run:
        """Everything a run needs, loaded and resolved; raises ExplorerError subclasses."""
        return self._finish(prepare_run(request, check_request(request), self._store), request)

    def _finish(self, loading: Generator[Status | Notice, None, T], request: RunRequest) -> T:
        """What a loading generator returns; its notices are kept for ``take_notices``."""

        def keep(event: Status | Notice) -> None:
            if isinstance(event, Notice):
                self._notices[f"{request.method}: {event.text}"] = None

        return drain(loading, keep)


def _generate_options(sampling: Sampling) -> dict[str, Any]:
    """Our sampling as transformers' generate takes it; its own default for top_k is 50, so all are said."""
    if sampling.is_greedy:
        return {"do_sample": False}
    filters = {"top_k": sampling.top_k, "top_p": float(sampling.top_p)}
    return {"do_sample": True, "temperature": float(sampling.temperature)} | filters


def to_measurement(run: Run, question: Question, decoding: Decoding, steps: list[Step]) -> Measurement:
    """What is kept of one finished decoding of a question."""
    whole = [step for step in steps if not step.is_cut]
    tried, accepted = depth_counts(whole)
    target = run.models.target
    split = {name: sum(getattr(step.ms, name) for step in steps) for name in ("verify", "commit", "other", "record")}
    return Measurement(
        question_id=question.id,
        category=question.category,
        method=run.request.method,
        output=decoding.output,
        stop=decoding.stop or "error",
        num_prompt_tokens=len(run.prompt.token_ids),
        settings=run.settings,
        prefill_ms=decoding.prefill_ms.target + (decoding.prefill_ms.drafter or 0.0),
        decode_ms=sum(step.ms.total for step in steps),
        split_ms={"draft": sum(sum(step.ms.draft) for step in steps)} | split,
        num_steps=len(whole),
        num_draft_tokens=sum(step.num_drafted for step in whole),
        num_accepted_draft_tokens=sum(step.num_accepted for step in whole),
        acceptance_histogram=acceptance_histogram(whole),
        tried_by_depth=tried,
        accepted_by_depth=accepted,
        gaps=decoding.gaps if run.request.method == AUTOREGRESSIVE else [],
        drafter=run.drafter,
        target_bytes=target.num_parameters * target.dtype.itemsize,
        heads=head_counts(whole, decoding.output, len(run.prompt.token_ids)),
    )
