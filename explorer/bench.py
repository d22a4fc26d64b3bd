"""The benchmark: many prompts, all methods interleaved prompt by prompt, so that a drifting machine hits all alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from explorer.bench_report import AUTOREGRESSIVE, GENERATE, GENERATE_ASSISTED
from explorer.engine import Decoding
from explorer.errors import SettingError
from explorer.fallback import FallbackPolicy
from explorer.loading import ModelStore, drafter_path, with_one_target
from explorer.measurement import Measurement, ResultsFile
from explorer.metrics import acceptance_histogram, depth_counts, head_counts
from explorer.peers import Peers
from explorer.plain_steps import is_rest
from explorer.questions import Question
from explorer.run_setup import Run, check_request, prepare_run
from explorer.runner import warm_decoding
from explorer.runner_events import Notice, RunRequest, Status, drain
from explorer.text import render_prompt
from explorer.trace import Step

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """One measurement was made (or found): how far the benchmark is, and what had to be said."""

    num_done: int
    num_all: int
    measurement: Measurement | None
    notices: tuple[str, ...] = ()


def run_bench(
    requests: Mapping[str, RunRequest], questions: list[Question], results: ResultsFile, outside: Sequence[str] = ()
) -> Iterator[Progress]:
    """Measure every request, by the name of its lane, and every lane of PEERS in ``outside`` on every question.

    The lanes take turns at going first. The requests' prompts are replaced by the questions'. Measurements already in
    ``results`` are not made again. Raises SettingError where a lane from outside lacks its draft model.
    """
    bench = _Bench()
    requests = dict(zip(requests, bench.one_target(list(requests.values())), strict=True))
    first = next(iter(requests.values()))
    bench.check(first, outside)
    lanes = [*outside, *requests]
    for request in requests.values():  # what does not load or resolve is said before anything is measured
        bench.prepare(dataclasses.replace(request, prompt=questions[0].text))
    num_all, num_done = len(questions) * len(lanes), 0
    for number, question in enumerate(questions):
        turn = number % len(lanes)
        for lane in lanes[turn:] + lanes[:turn]:
            num_done += 1
            if (question.id, lane) in results:
                yield Progress(num_done, num_all, None)
                continue
            request = dataclasses.replace(requests.get(lane, first), prompt=question.text)
            measure = bench.outside if lane in outside else bench.decode
            measured = measure(lane, request, question)
            results.add(measured)
            yield Progress(num_done, num_all, measured, tuple(bench.take_notices()))


class _Bench:
    """The models of one benchmark."""

    def __init__(self) -> None:
        self._store = ModelStore()
        self._peers: Peers | None = None
        self._notices: dict[str, None] = {}
        self._told = 0

    def take_notices(self) -> list[str]:
        """What was clamped, each sentence once."""
        new = list(self._notices)[self._told :]
        self._told = len(self._notices)
        return new

    def one_target(self, requests: list[RunRequest]) -> list[RunRequest]:
        """The lanes' requests, which name one target, on what a drafter among theirs makes of it."""
        return with_one_target(requests, self._store.preset(requests[0]))

    def check(self, request: RunRequest, outside: Sequence[str]) -> None:
        """Refuse, before anything is measured, a lane that has nothing to draft with."""
        preset = self._store.preset(request)
        if GENERATE_ASSISTED in outside and "draft_model" not in preset.drafters:
            raise SettingError(f"{GENERATE_ASSISTED}: no draft model is known for {preset.name}; leave it out")

    def decode(self, lane: str, request: RunRequest, question: Question) -> Measurement:
        """A lane of ours, warmed up."""
        run = self.prepare(request)
        decoding = warm_decoding(run, run.method, FallbackPolicy() if request.is_adaptive else None)
        decoding.prefill()
        steps = list(decoding.steps())
        return to_measurement(lane, run, question, decoding, steps)

    def outside(self, lane: str, request: RunRequest, question: Question) -> Measurement:
        """One of transformers' own lanes: the prompt pass is what a run for one token costs, and is taken off."""
        models = self._finish(self._store.models(request), request)
        target = models.target
        if self._peers is None:
            preset = self._store.preset(request)
            draft_model = preset.drafters.get("draft_model")
            drafting = drafter_path(draft_model) if draft_model else None
            self._peers = Peers(target, preset.source, drafting, request.adapter)
        ids = render_prompt(target.tokenizer, question.text, request.system, request.use_chat_template).token_ids
        stops = [] if request.ignore_stop else sorted(target.stop_ids)
        answer = self._peers.run(lane, ids, request.max_new_tokens, request.sampling, stops)
        output = answer.output
        return Measurement(
            question_id=question.id,
            category=question.category,
            method=lane,
            output=output,
            stop="eos" if output[-1] in stops else "max_new_tokens",
            num_prompt_tokens=len(ids),
            prefill_ms=answer.prefill_ms,
            decode_ms=max(answer.total_ms - answer.prefill_ms, 0.0),
            num_steps=len(output) - 1 if lane == GENERATE else 0,  # how many passes the others made is not told
        )

    def prepare(self, request: RunRequest) -> Run:
        """Everything a run needs, loaded and resolved; raises ExplorerError subclasses."""
        return self._finish(prepare_run(request, check_request(request), self._store), request)

    def _finish(self, loading: Generator[Status | Notice, None, T], request: RunRequest) -> T:
        """What a loading generator returns; its notices are kept for ``take_notices``."""

        def keep(event: Status | Notice) -> None:
            if isinstance(event, Notice):
                self._notices[f"{request.method}: {event.text}"] = None

        return drain(loading, keep)


def to_measurement(lane: str, run: Run, question: Question, decoding: Decoding, steps: list[Step]) -> Measurement:
    """What is kept of one finished decoding of a question."""
    whole = [step for step in steps if not step.is_cut]
    tried, accepted = depth_counts(whole)
    target = run.models.target
    split = {name: sum(getattr(step.ms, name) for step in steps) for name in ("verify", "commit", "other", "record")}
    return Measurement(
        question_id=question.id,
        category=question.category,
        method=lane,
        output=decoding.output,
        stop=decoding.stop or "error",
        num_prompt_tokens=len(run.prompt.token_ids),
        settings=run.settings,
        prefill_ms=decoding.prefill_ms.target + (decoding.prefill_ms.drafter or 0.0),
        decode_ms=sum(step.ms.total for step in steps),
        split_ms={"draft": sum(sum(step.ms.draft) for step in steps)} | split,
        num_steps=len(whole),
        num_rests=sum(map(is_rest, whole)),
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
