"""What every experiment needs: models that stay loaded, prompts, and trials with the numbers that a record keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from explorer.bench import to_measurement
from explorer.engine import Decoding
from explorer.errors import PromptError
from explorer.lab_records import Trial
from explorer.loading import LoadedModels, ModelStore, with_one_target
from explorer.measurement import Measurement
from explorer.questions import Question
from explorer.run_setup import Run, check_request, prepare_run
from explorer.runner import warm_decoding
from explorer.runner_events import Notice, RunRequest, Status, drain
from explorer.target import Target
from explorer.trace import DrafterRecord, Step

T = TypeVar("T")


@dataclass(frozen=True)
class Condition:
    """One trial to make: all ``requests`` together. value: None for the mean length of their prompts in tokens."""

    lane: str
    sweep: str
    value: float | None
    requests: tuple[RunRequest, ...]
    word: str = ""


@dataclass(frozen=True)
class _Decoded:
    measurement: Measurement
    num_steps: int  # the cut one included, as the times do
    num_rows: int


class Session:
    """One experiment's models and prompts. requests: one a method, their prompts left open; prompts: short to long."""

    def __init__(self, requests: Sequence[RunRequest], prompts: Sequence[str]) -> None:
        self.store = ModelStore()
        self.requests = tuple(with_one_target(requests, self.store.preset(requests[0])))
        self.prompts = tuple(prompts)
        self.drafters: dict[str, DrafterRecord] = {}
        self.written: dict[str, tuple[list[int], int]] = {}  # prompt -> its tokens and the first output's, how many own
        self._notices: dict[str, None] = {}
        self._known: dict[str, Trial] = {}

    @property
    def notices(self) -> list[str]:
        """What had to be said of the requests, each sentence once."""
        return list(self._notices)

    @property
    def models(self) -> LoadedModels:
        """The target with its drafters; raises ExplorerError subclasses."""
        return self._finish(self.store.models(self.requests[0]))

    @property
    def target(self) -> Target:
        """The target that all requests name."""
        return self.models.target

    def with_prompts(self, request: RunRequest, count: int) -> tuple[RunRequest, ...]:
        """The request once for each of the first ``count`` prompts."""
        return tuple(dataclasses.replace(request, prompt=prompt) for prompt in self.prompts[:count])

    def settings(self, request: RunRequest) -> dict[str, object]:
        """The request's settings as they are resolved and clamped."""
        return self._prepare(self.with_prompts(request, 1)[0]).settings

    def trials(
        self, conditions: Sequence[Condition], span: tuple[float, float] = (0.0, 1.0), *, is_timed: bool = False
    ) -> Generator[Status, None, list[Trial]]:
        """Make them in turn; raises ExplorerError subclasses. span: the part of the progress that they are.

        is_timed: warm up before each decoding. A condition whose requests were measured already is not measured again.
        """
        made = []
        for number, condition in enumerate(conditions):
            share = span[0] + (span[1] - span[0]) * number / len(conditions)
            yield Status(f"{condition.lane}, {condition.sweep} {_said(condition)}", share)
            key = repr(condition.requests)
            if key not in self._known or not is_timed:
                decoded = [self._decode(request, is_timed) for request in condition.requests]
                self._known[key] = _to_trial(condition, decoded)
            known = self._known[key]
            value = known.value if condition.value is None else condition.value
            made.append(
                dataclasses.replace(known, value=value, lane=condition.lane, sweep=condition.sweep, word=condition.word)
            )
        return made

    def _decode(self, request: RunRequest, is_timed: bool) -> _Decoded:
        run = self._prepare(request)
        if is_timed:
            decoding = warm_decoding(run, run.method)
        else:
            decoding = Decoding(run.models.target, run.method, run.prompt.token_ids, run.options)
        decoding.prefill()
        steps: list[Step] = list(decoding.steps())
        prompt_ids = run.prompt.token_ids
        self.written.setdefault(run.prompt.rendered, (prompt_ids + decoding.output, len(decoding.output)))
        measured = to_measurement(request.method, run, Question("prompt", "all", run.prompt.text), decoding, steps)
        return _Decoded(measured, len(steps), max((len(step.tree) for step in steps), default=1))

    def _prepare(self, request: RunRequest) -> Run:
        run = self._finish(prepare_run(request, check_request(request), self.store))
        if run.drafter is not None:
            self.drafters[request.method] = run.drafter
        return run

    def _finish(self, loading: Generator[Status | Notice, None, T] | Generator[Status, None, T]) -> T:
        def keep(event: Status | Notice) -> None:
            if isinstance(event, Notice):
                self._notices[event.text] = None

        return drain(loading, keep)


def _said(condition: Condition) -> str:
    if condition.word:
        return condition.word
    return "of its own" if condition.value is None else f"{condition.value:g}"


def _to_trial(condition: Condition, decoded: list[_Decoded]) -> Trial:
    """The sums over all runs of a condition; raises PromptError where no run had a complete step."""
    whole = [item for item in decoded if item.measurement.num_steps]
    if not whole:
        raise PromptError("the answers were too short to measure anything: raise --max-new-tokens")
    runs, num_steps = [item.measurement for item in decoded], sum(item.num_steps for item in decoded)
    split = {name: sum(run.split_ms[name] for run in runs) / num_steps for name in ("draft", "verify")}
    return Trial(
        method=runs[0].method,
        lane=condition.lane,
        sweep=condition.sweep,
        value=sum(run.num_prompt_tokens for run in runs) / len(runs),
        num_steps=sum(run.num_steps for run in runs),
        num_draft_tokens=sum(run.num_draft_tokens for run in runs),
        num_accepted_draft_tokens=sum(run.num_accepted_draft_tokens for run in runs),
        tried_by_depth=_added([run.tried_by_depth for run in runs]),
        accepted_by_depth=_added([run.accepted_by_depth for run in runs]),
        num_rows=max(item.num_rows for item in decoded),
        draft_ms=split["draft"],
        verify_ms=split["verify"],
        step_ms=sum(run.decode_ms for run in runs) / num_steps,
        taus=[1 + run.measurement.num_accepted_draft_tokens / run.measurement.num_steps for run in whole],
        settings=runs[0].settings,
    )


def _added(lists: list[list[int]]) -> list[int]:
    """Entry by entry; a shorter list has none of the deeper."""
    longest = max(map(len, lists), default=0)
    return [sum(each[i] for each in lists if i < len(each)) for i in range(longest)]
