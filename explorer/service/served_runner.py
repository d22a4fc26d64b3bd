"""A runner as a server offers it: within the operator's limits, watched, and able to stop for good.

It stands between the page and the real runner, so that every run is limited and counted, whoever asked for it.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from explorer.errors import ExplorerError, LimitError, ShutdownError
from explorer.prediction import CostReport
from explorer.runner_events import BaselineProgress, DeviceState, Event, Finished, RunRequest, Started, Status, Stepped
from explorer.trace import Step

STOPPING = "This server is stopping; try again in a minute."
POLL_SECONDS = 0.05  # how often a stop looks whether the runs are over


class Runs(Protocol):
    """What is limited and watched: explorer.runner.Runner, or one that loads it when it is needed."""

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """Events of one run; closing the generator frees the device within a step."""

    def measure(self, request: RunRequest, methods: Sequence[str]) -> Generator[Status, None, CostReport]:
        """What passes cost here."""

    def state(self) -> DeviceState:
        """What the device does now."""


@dataclass
class RunReport:
    """What may be told of a run: names, counts and times, and nothing of its text.

    stop: a trace's own stop, or "refused" (before its first token), "limit" (the operator's), "shutdown" (it ran when
    the server ended), "error". Seconds from when it was asked for; waited_s of them for the device.
    """

    run: str
    method: str
    target: str
    waited_s: float = 0.0
    seconds: float = 0.0
    num_prompt_tokens: int | None = None
    num_tokens: int = 0
    num_steps: int = 0
    stop: str = "cancelled"


class Watcher(Protocol):
    """Hears of every run; called on the run's thread, so it must be quick and must not raise."""

    def saw_step(self, report: RunReport, step: Step) -> None:
        """One step was decoded; the report includes it."""

    def saw_end(self, report: RunReport) -> None:
        """The run is over, however it ended; the device is free again."""


@dataclass(frozen=True)
class RunLimits:
    """What one run may ask for. max_seconds counts from its first decoding, the baseline's lane included."""

    max_new_tokens: int
    max_prompt_tokens: int | None
    max_seconds: float


class ServedRunner:
    """``runner`` within ``limits``; every method may be called from any thread."""

    def __init__(self, runner: Runs, limits: RunLimits, watchers: Sequence[Watcher] = ()) -> None:
        self._runner = runner
        self._limits = limits
        self._watchers = tuple(watchers)
        self._lock = threading.Lock()
        self._num_running = 0
        self._is_stopping = False
        self._must_end = False

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """Events of one run. Raises LimitError for what the operator does not allow, else what the runner raises."""
        report = RunReport(secrets.token_hex(4), request.method, request.target)
        self._enter()
        began = time.monotonic()
        try:
            with closing(self._runner.run(self._within_limits(request))) as events:
                yield from self._watch(events, report)
        except LimitError as error:
            report.stop = "shutdown" if isinstance(error, ShutdownError) else "limit"
            raise
        except ExplorerError:
            report.stop = "error" if report.num_tokens else "refused"
            raise
        except Exception:
            report.stop = "error"
            raise
        finally:
            report.seconds = time.monotonic() - began
            self._leave()
            for watcher in self._watchers:
                watcher.saw_end(report)

    def measure(self, request: RunRequest, methods: Sequence[str]) -> Generator[Status, None, CostReport]:
        """What passes cost here; it ends early where the server stops."""
        self._enter()
        try:
            with closing(self._runner.measure(request, methods)) as work:
                while True:
                    try:
                        yield next(work)
                    except StopIteration as end:
                        report: CostReport = end.value
                        return report
                    self._check_stop()
        finally:
            self._leave()

    def state(self) -> DeviceState:
        """What the device does now."""
        return self._runner.state()

    @property
    def is_stopping(self) -> bool:
        """Whether new runs are refused."""
        return self._is_stopping

    def stop(self, grace_s: float, cancel_s: float) -> bool:
        """Refuse new runs, let those that run end within ``grace_s``, then end the others at their next event.

        True once nothing runs, False where a run did not reach an event within another ``cancel_s``.
        """
        self._is_stopping = True
        if self._is_idle_within(grace_s):
            return True
        self._must_end = True
        return self._is_idle_within(cancel_s)

    def _watch(self, events: Generator[Event, None, None], report: RunReport) -> Iterator[Event]:
        waiting: float | None = None  # since when
        decoding: float | None = None
        for event in events:
            now = time.monotonic()
            if waiting is not None:
                report.waited_s = now - waiting
            is_ahead = isinstance(event, Status) and event.num_ahead > 0
            waiting = (waiting or now) if is_ahead else None
            if decoding is None and isinstance(event, BaselineProgress | Started):
                decoding = now
            self._note(report, event)
            yield event
            self._check_stop()
            if decoding is not None and not isinstance(event, Finished):
                self._check_time(time.monotonic() - decoding, report)

    def _note(self, report: RunReport, event: Event) -> None:
        if isinstance(event, Started):
            report.num_prompt_tokens, report.num_tokens = len(event.trace.prompt.token_ids), 1
        elif isinstance(event, Stepped):
            report.num_steps += 1
            report.num_tokens += len(event.step.emitted)
            for watcher in self._watchers:
                watcher.saw_step(report, event.step)
        elif isinstance(event, Finished):
            report.stop = event.trace.stop

    def _within_limits(self, request: RunRequest) -> RunRequest:
        limit = self._limits.max_new_tokens
        if request.max_new_tokens > limit:
            raise LimitError(f"A run may write at most {limit:,} tokens here, not {request.max_new_tokens:,}.")
        return dataclasses.replace(request, max_prompt_tokens=self._limits.max_prompt_tokens)

    def _check_time(self, seconds: float, report: RunReport) -> None:
        limit = self._limits.max_seconds
        if seconds <= limit:
            return
        if not report.num_tokens:  # rows are not to blame
            what, ask = "of plain decoding, before the first step", "Ask for fewer tokens."
        else:
            what, ask = "of decoding", "Ask for fewer tokens or rows."
        raise LimitError(f"Stopped after {seconds:,.0f} s {what}: this server gives a run {limit:,.0f} s. {ask}")

    def _check_stop(self) -> None:
        if self._must_end:
            raise ShutdownError(STOPPING)

    def _enter(self) -> None:
        with self._lock:
            if self._is_stopping:
                raise ShutdownError(STOPPING)
            self._num_running += 1

    def _leave(self) -> None:
        with self._lock:
            self._num_running -= 1

    def _is_idle_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._num_running and time.monotonic() < end:
            time.sleep(POLL_SECONDS)
        return not self._num_running
