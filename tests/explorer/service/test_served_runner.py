"""A served runner: limits in words, a report of every run, a stop that leaves nothing running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from explorer.errors import DeviceError, LimitError
from explorer.runner_events import BaselineProgress, Finished, RunRequest, Started, Status, Stepped, drain
from explorer.service.served_runner import RunLimits, RunReport, ServedRunner
from explorer.trace import Step
from tests.support.fake_runner import FakeRunner
from tests.support.traces import make_trace

LIMITS = RunLimits(max_new_tokens=64, max_prompt_tokens=50, max_seconds=60)
REQUEST = RunRequest("eagle2", prompt="a secret", target="tiny", max_new_tokens=32)


class Notes:
    """A watcher that keeps what it hears."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.reports: list[RunReport] = []

    def saw_step(self, report: RunReport, step: Step) -> None:
        self.steps.append(step)

    def saw_end(self, report: RunReport) -> None:
        self.reports.append(report)


def served(limits: RunLimits = LIMITS, **fake: Any) -> tuple[ServedRunner, FakeRunner, Notes]:
    runner, notes = FakeRunner(make_trace("eagle2", 5, 12), **fake), Notes()
    return ServedRunner(runner, limits, [notes]), runner, notes


def until(events: Any, kind: type) -> None:
    assert any(isinstance(event, kind) for event in events)


def test_a_run_passes_through_and_is_reported() -> None:
    runner, fake, notes = served()
    events = list(runner.run(REQUEST))
    assert isinstance(events[-1], Finished)
    assert fake.requests[0].max_prompt_tokens == 50, "the engine is told the operator's bound"
    (report,) = notes.reports
    trace = events[-1].trace
    assert (report.method, report.target, report.stop) == ("eagle2", "tiny", trace.stop)
    assert (report.num_steps, report.num_tokens) == (5, len(trace.output.token_ids))
    assert report.num_prompt_tokens == len(trace.prompt.token_ids)
    assert notes.steps == trace.steps
    assert "secret" not in repr(report)


@pytest.mark.parametrize(("until_kind", "stop"), [(Status, "cancelled"), (Stepped, "cancelled")])
def test_a_closed_run_frees_the_device_and_is_reported_once(until_kind: type, stop: str) -> None:
    runner, fake, notes = served()
    events = runner.run(REQUEST)
    until(events, until_kind)
    events.close()
    assert not fake.device.locked()
    assert [report.stop for report in notes.reports] == [stop]


@pytest.mark.parametrize(("error", "stop"), [(DeviceError("no"), "refused"), (RuntimeError("bug"), "error")])
def test_a_failed_run_says_how(error: Exception, stop: str) -> None:
    runner, fake, notes = served(error=error)
    with pytest.raises(type(error)):
        list(runner.run(REQUEST))
    assert [report.stop for report in notes.reports] == [stop]
    assert not fake.device.locked()


def test_too_many_tokens_are_refused_before_the_runner_hears_of_it() -> None:
    runner, fake, notes = served()
    with pytest.raises(LimitError, match="at most 64 tokens here, not 65"):
        list(runner.run(RunRequest("eagle2", prompt="x", max_new_tokens=65)))
    assert fake.requests == []
    assert [report.stop for report in notes.reports] == ["limit"]


def test_a_run_that_takes_too_long_is_stopped_at_its_next_step() -> None:
    runner, fake, notes = served(RunLimits(64, None, max_seconds=0.02), step_ms=30)
    seen = []
    with pytest.raises(LimitError, match=r"Stopped after 0 s of decoding: this server gives a run 0 s\."):
        seen.extend(runner.run(REQUEST))
    assert notes.reports[0].stop == "limit"
    assert 0 <= notes.reports[0].num_steps < 3
    assert not fake.device.locked()


def test_a_time_limit_that_plain_decoding_used_up_is_told_so() -> None:
    runner, fake, _ = served(RunLimits(64, None, max_seconds=0.02))
    events = runner.run(REQUEST)
    until(events, BaselineProgress)
    time.sleep(0.05)
    with pytest.raises(LimitError, match=r"of plain decoding, before the first step: .*Ask for fewer tokens\.$"):
        next(events)
    assert not fake.device.locked()


def test_waiting_is_measured_and_no_part_of_the_time_limit() -> None:
    class Waits(FakeRunner):
        def run(self, request: RunRequest) -> Any:
            for ahead in (2, 1):
                yield Status(f"waiting for the device: {ahead} ahead", num_ahead=ahead)
                time.sleep(0.05)
            yield from super().run(request)

    notes = Notes()
    list(ServedRunner(Waits(make_trace("eagle2", 2, 12)), RunLimits(64, None, 0.09), [notes]).run(REQUEST))
    assert 0.1 <= notes.reports[0].waited_s <= notes.reports[0].seconds


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_stop_lets_a_short_run_end_and_refuses_new_ones() -> None:
    runner, _, notes = served(step_ms=20)
    began = threading.Event()
    thread = in_thread(lambda: [began.set() for event in runner.run(REQUEST) if isinstance(event, Started)])
    assert began.wait(10)
    assert runner.stop(grace_s=20, cancel_s=0)
    thread.join(10)
    assert notes.reports[0].stop == "max_new_tokens"
    assert runner.is_stopping
    with pytest.raises(LimitError, match="stopping"):
        list(runner.run(REQUEST))
    with pytest.raises(LimitError, match="stopping"):
        drain(runner.measure(REQUEST, ["eagle2"]))


def test_a_stop_ends_a_long_run_at_its_next_step() -> None:
    runner, fake, notes = served(step_ms=50)
    began, errors = threading.Event(), []

    def run() -> None:
        try:
            for event in runner.run(REQUEST):
                if isinstance(event, Started):
                    began.set()
        except LimitError as error:
            errors.append(str(error))

    thread = in_thread(run)
    assert began.wait(10)
    assert runner.stop(grace_s=0, cancel_s=10)
    thread.join(10)
    assert "stopping" in errors[0]
    assert notes.reports[0].stop == "shutdown", "no limit of the operator's ended it"
    assert not fake.device.locked()


def test_a_stop_does_not_wait_for_what_nothing_interrupts() -> None:
    runner, _, _ = served()
    events = runner.run(REQUEST)
    next(events)
    assert not runner.stop(grace_s=0, cancel_s=0.1)
    events.close()
    assert runner.stop(grace_s=0, cancel_s=0)


def test_measuring_passes_through() -> None:
    runner, _, _ = served()
    assert drain(runner.measure(REQUEST, ["eagle2"])).target == "tiny"
    assert runner.state().is_loaded
    assert runner.stop(0, 0), "a measurement that ended runs no more"
