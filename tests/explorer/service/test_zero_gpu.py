"""Runs on a lent GPU: whole in one call, pickled both ways, refused in the same words, no longer than needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from explorer.errors import DeviceError, SettingError
from explorer.runner_events import Finished, RunRequest, Started, Stepped, drain
from explorer.service import zero_gpu
from explorer.service.zero_gpu import MARK, ZeroGpuRunner, is_lent, lender, seconds_of_run
from tests.support.goldens import FOLDER
from tests.support.lent_gpu import LentGpu

REQUEST = RunRequest(
    "eagle2", prompt="Cats?", max_new_tokens=6, target=str(FOLDER / "base_a"), drafter=str(FOLDER / "eagle_bias")
)


def here(**_how: object) -> Callable[..., Any]:
    """A lender that runs the work in this process."""
    return lambda work: work


def instead(work: Callable[..., Iterator[Any]]) -> Callable[..., Any]:
    """A lender that does other work."""
    return lambda **_how: lambda _work: work


def test_a_whole_run_comes_back_from_the_worker() -> None:
    lent = LentGpu()
    runner = ZeroGpuRunner(lent)
    events = list(runner.run(REQUEST))
    kinds = [type(event) for event in events]
    assert kinds[-1] is Finished
    assert kinds.index(Started) < kinds.index(Stepped)
    trace = events[-1].trace
    assert trace.baseline is not None and trace.baseline.output_equal is True, "both lanes ran in the one call"
    assert lent.asked == [seconds_of_run(REQUEST)]
    assert not runner.state().is_busy


def test_a_refusal_arrives_as_the_same_error() -> None:
    runner = ZeroGpuRunner(here)
    with pytest.raises(SettingError, match="unknown method 'magic'"):
        list(runner.run(RunRequest("magic", prompt="?", target=REQUEST.target)))
    assert not runner.state().is_busy
    assert zero_gpu.Refusal("NoSuchError", "x").error().args == ("x",)


def test_a_run_that_is_closed_gives_the_gpu_back() -> None:
    closed: list[bool] = []

    def endless(*_arguments: Any) -> Iterator[Any]:
        try:
            while True:
                yield "event"
        finally:
            closed.append(True)

    runner = ZeroGpuRunner(instead(endless))
    events = runner.run(REQUEST)
    assert [next(events), next(events)][1] == "event"
    assert runner.state().is_busy
    events.close()
    assert closed == [True]
    assert not runner.state().is_busy


def test_a_measurement_returns_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    report = object()

    class Fake:
        def measure(self, _request: RunRequest, _methods: list[str]) -> Iterator[Any]:
            yield "status"
            return report

    monkeypatch.setattr(zero_gpu, "_runner", Fake)
    seen: list[Any] = []
    assert drain(ZeroGpuRunner(here).measure(REQUEST, ["eagle2"]), seen.append) is report
    assert seen[-1] == "status"


def test_a_gpu_that_is_taken_away_is_said() -> None:
    def nothing(*_arguments: object) -> Iterator[Any]:
        yield from ()

    runner = ZeroGpuRunner(instead(nothing))
    with pytest.raises(DeviceError, match="ended this run before it was done"):
        drain(runner.measure(REQUEST, []))

    def aborted(*_arguments: object) -> Iterator[Any]:
        yield "event"
        raise RuntimeError("GPU task aborted")

    runner = ZeroGpuRunner(instead(aborted))
    with pytest.raises(DeviceError, match="ended this run before it was done"):
        list(runner.run(REQUEST))
    assert not runner.state().is_busy


@pytest.mark.parametrize(("tokens", "seconds"), [(1, 20), (128, 28), (512, 51), (100_000, 120)])
def test_seconds_grow_with_the_tokens(tokens: int, seconds: int) -> None:
    assert seconds_of_run(RunRequest("eagle2", max_new_tokens=tokens)) == seconds


def test_where_gpus_are_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MARK, raising=False)
    assert not is_lent()
    monkeypatch.setenv(MARK, "true")
    assert is_lent()
    monkeypatch.setitem(sys.modules, "spaces", None)
    with pytest.raises(DeviceError, match="pip install spaces"):
        lender()
    spaces = ModuleType("spaces")
    spaces.GPU = here  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spaces", spaces)
    assert lender() is here


def test_a_lent_gpu_captures_nothing_unless_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Noting:
        def run(self, request: RunRequest) -> Iterator[Any]:
            seen.append(request.execution)
            yield from ()

    monkeypatch.setattr(zero_gpu, "_runner", Noting)
    for execution in ("auto", "eager", "graphed"):
        list(zero_gpu.run_in_worker(replace(REQUEST, execution=execution)))
    assert seen == ["eager", "eager", "graphed"]
