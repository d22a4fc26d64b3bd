"""Memory that runs out and numbers that are none, anywhere in a run: one sentence, and the next run works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from explorer.engine import Decoding
from explorer.errors import DeviceError, ExplorerError
from explorer.runner import OUT_OF_MEMORY, Runner
from explorer.runner_events import Finished, RunRequest, Started, Stepped
from explorer.target import Target
from explorer.trace import Trace, from_json, to_json
from tests.support.goldens import FOLDER

ERRORS: dict[str, Callable[[], Exception]] = {
    "gpu": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
    "cpu": lambda: RuntimeError(
        "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory"
    ),
    "python": MemoryError,
}


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


def run(runner: Runner, method: str = "eagle2", **changes: Any) -> Trace:
    drafter = str(FOLDER / "eagle_bias") if method == "eagle2" else None
    given: dict[str, Any] = {"prompt": "Count the red cats", "max_new_tokens": 16, "ignore_stop": True}
    given |= {"target": str(FOLDER / "base_a"), "drafter": drafter}
    request = RunRequest(method, **(given | changes))
    return next(event.trace for event in runner.run(request) if isinstance(event, Finished))


def failing_at(call: int, what: Callable[..., Any], error: Callable[[], Exception]) -> Callable[..., Any]:
    """``what``, which raises at its ``call``-th call."""
    count = [0]

    def fails(*arguments: Any, **named: Any) -> Any:
        count[0] += 1
        if count[0] == call:
            raise error()
        return what(*arguments, **named)

    return fails


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize(
    ("place", "call"), [("prefill", 1), ("prefill", 3), ("forward", 1), ("forward", 5), ("start", 4), ("commit", 7)]
)
def test_memory_that_runs_out(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, kind: str, place: str, call: int
) -> None:
    expected = run(runner).output
    monkeypatch.setattr(Target, place, failing_at(call, getattr(Target, place), ERRORS[kind]))
    with pytest.raises(DeviceError) as caught:
        run(runner)
    assert str(caught.value) == OUT_OF_MEMORY
    monkeypatch.undo()
    assert not runner.state().is_busy
    assert run(runner).output == expected


def test_memory_that_really_runs_out(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = Target.forward

    def greedy_for_memory(target: Target, tree: Any) -> Any:
        torch.empty(2**60)
        return forward(target, tree)

    monkeypatch.setattr(Target, "forward", greedy_for_memory)
    with pytest.raises(DeviceError, match="out of memory"):
        run(runner)
    monkeypatch.undo()
    assert run(runner).stop == "max_new_tokens"


def test_other_errors_stay_what_they_are(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Target, "forward", failing_at(2, Target.forward, lambda: RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        run(runner)
    assert not runner.state().is_busy


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("method", ["eagle2", "lookahead", "jacobi", "prompt_lookup", "autoregressive"])
@pytest.mark.parametrize("call", [1, 3])
def test_numbers_that_are_none_end_the_run_with_a_valid_trace(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, method: str, value: float, call: int
) -> None:
    decoding_step = Decoding._step

    def poisoned(self: Decoding, index: int) -> Any:
        if index == call and self._method.name == method:
            self._target.head, head = lambda hidden: head(hidden) * value, self._target.head
            try:
                return decoding_step(self, index)
            finally:
                self._target.head = head
        return decoding_step(self, index)

    monkeypatch.setattr("explorer.runner.NUM_WARM_UP_STEPS", 0)
    monkeypatch.setattr(Decoding, "_step", poisoned)
    trace = run(runner, method)
    assert trace.stop == "non_finite"
    assert len(trace.steps) <= call
    assert from_json(to_json(trace)) == trace
    monkeypatch.undo()
    assert run(runner, method).stop == "max_new_tokens"


def test_hostile_requests_are_sentences(runner: Runner) -> None:
    for changes in (
        {"prompt": ""}, {"prompt": "\ud800"}, {"max_new_tokens": 0}, {"max_new_tokens": 1.5}, {"dtype": "float64"},
        {"settings": {"total_tokens": "∞"}}, {"target": "\x00"}, {"max_prompt_tokens": 3}, {"backend": ["naive"]},
    ):  # fmt: skip
        try:
            run(runner, **changes)
        except ExplorerError as error:
            if not str(error):
                pytest.fail("an error that says nothing")
    assert not runner.state().is_busy


def test_a_prompt_of_too_many_tokens_is_told_the_bound(runner: Runner) -> None:
    with pytest.raises(ExplorerError, match="tokens; this server takes at most 3"):
        run(runner, max_prompt_tokens=3)
    assert run(runner, max_prompt_tokens=100).stop


@pytest.mark.parametrize("until", [Started, Stepped])
def test_a_run_that_is_left_frees_the_device_at_once(runner: Runner, until: type) -> None:
    events = runner.run(RunRequest("autoregressive", "Count", target=str(FOLDER / "base_a"), ignore_stop=True))
    assert any(isinstance(event, until) for event in events)
    assert runner.state().is_busy
    events.close()
    assert not runner.state().is_busy
