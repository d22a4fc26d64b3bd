"""Runs on Hugging Face's ZeroGPU, where a GPU is lent for one call at a time.

The call goes on in a worker process that has the GPU; the server's own process never touches CUDA. Everything between
the two is pickled, so a run sends its events, an error goes as its words, and models live in the worker only. A whole
run, plain decoding included, is one call: nothing of it survives in the worker that a next click could rely on.

(huggingface.co/docs/hub/spaces-zerogpu: generators are passed through, ``duration`` may be a function of the call's
arguments, and a shorter one waits less.)
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from explorer import errors
from explorer.checkpoints import smollm2
from explorer.config import DEFAULT_TARGET
from explorer.errors import DeviceError, ExplorerError
from explorer.prediction import CostReport
from explorer.runner_events import DeviceState, Event, RunRequest, Status
from explorer.target_fetch import TargetFetch

if TYPE_CHECKING:
    from explorer.runner import Runner

MARK = "SPACES_ZERO_GPU"  # set by the platform where GPUs are lent
LOADING_SECONDS = 20  # a worker that has loaded nothing yet
SECONDS_A_TOKEN = 0.06  # estimated: both lanes together, of a target of 7 billion parameters
MOST_SECONDS = 120
MEASURING_SECONDS = 60
LOG = logging.getLogger(__name__)
AWAY = "The lent GPU ended this run before it was done: ask for fewer tokens, or try again later."


@dataclass(frozen=True)
class Refusal:
    """An ExplorerError on its way to the server's process."""

    kind: str
    text: str

    def error(self) -> ExplorerError:
        """The same error again."""
        kind = getattr(errors, self.kind, DeviceError)
        return kind(self.text)


@dataclass(frozen=True)
class Measured:
    """What a measurement returned, on its way to the server's process."""

    report: CostReport


def is_lent() -> bool:
    """Whether this process runs where GPUs are lent."""
    return os.environ.get(MARK, "").lower() in ("1", "true")


def run_in_worker(request: RunRequest) -> Iterator[Event | Refusal]:
    """All events of one run; an error of the asker's is the last one."""
    try:
        with closing(_runner().run(_uncaptured(request))) as events:
            yield from events
    except ExplorerError as error:
        yield Refusal(type(error).__name__, str(error))


def measure_in_worker(request: RunRequest, methods: Sequence[str]) -> Iterator[Status | Measured | Refusal]:
    """All statuses of one measurement, then what it returns."""
    try:
        yield Measured((yield from _runner().measure(_uncaptured(request), methods)))
    except ExplorerError as error:
        yield Refusal(type(error).__name__, str(error))


def _uncaptured(request: RunRequest) -> RunRequest:
    """The GPU is lent for seconds: capturing graphs would take more of them than replays give back."""
    return replace(request, execution="eager") if request.execution == "auto" else request


def seconds_of_run(request: RunRequest) -> int:
    """How long the GPU is asked for: what is not used is given back, and what is short waits less."""
    return min(MOST_SECONDS, round(LOADING_SECONDS + SECONDS_A_TOKEN * request.max_new_tokens))


def seconds_of_measuring(_request: RunRequest, _methods: Sequence[str]) -> int:
    """The same for a measurement of costs."""
    return MEASURING_SECONDS


@cache
def _runner() -> Runner:
    """The worker's own runner, with its models; a worker that is used again still has them."""
    from explorer.runner import Runner

    return Runner()


class ZeroGpuRunner:
    """The runner of the server's process: brings the default target, borrows a GPU for each run.

    lend: ``spaces.GPU``. It is applied at once, because the platform wants to see a borrower before the page is served.
    """

    def __init__(self, lend: Callable[..., Callable[..., Any]]) -> None:
        self._run = lend(duration=seconds_of_run)(run_in_worker)
        self._measure = lend(duration=seconds_of_measuring)(measure_in_worker)
        self._fetch = TargetFetch()
        self._lock = threading.Lock()
        self._num_runs = 0

    def warm_up(self, *, needs_default_target: bool) -> None:
        """Begin in the background to bring the default target, so that no GPU waits for a download."""
        if needs_default_target:
            self._fetch.begin()

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """Events of one run, as explorer.runner.Runner gives them."""
        with self._counted():
            yield from self._target_here(request)
            yield Status("waiting for a GPU")
            yield from self._answers(self._run(request))

    def measure(self, request: RunRequest, methods: Sequence[str]) -> Generator[Status, None, CostReport]:
        """What passes cost on a lent GPU."""
        with self._counted():
            yield from self._target_here(request)
            yield Status("waiting for a GPU")
            for event in self._answers(self._measure(request, list(methods))):
                if isinstance(event, Measured):
                    return event.report
                yield event
        raise DeviceError(AWAY)

    def state(self) -> DeviceState:
        """How many runs have borrowed a GPU or wait for one; the platform does not say which."""
        with self._lock:
            return DeviceState(True, self._num_runs > 0, max(self._num_runs - 1, 0))

    def _answers(self, events: Generator[Any, None, None]) -> Iterator[Any]:
        """What the worker sends; a refusal is raised here, as is the end of a loan, whatever its class."""
        with closing(events):
            try:
                for event in events:
                    if isinstance(event, Refusal):
                        raise event.error()
                    yield event
            except ExplorerError:
                raise
            except Exception as error:  # a quota, a time-out, a worker that died: the platform has its own classes
                LOG.exception("a lent GPU failed")
                raise DeviceError(AWAY) from error

    def _target_here(self, request: RunRequest) -> Iterator[Status]:
        if request.target == DEFAULT_TARGET and not smollm2.is_fetched():
            yield from self._fetch.wait()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._num_runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_runs -= 1


def lender() -> Callable[..., Callable[..., Any]]:
    """``spaces.GPU``; DeviceError where the platform lends GPUs and its package is missing."""
    try:
        from spaces import GPU
    except ImportError as error:
        raise DeviceError(f"{MARK} is set, but the package spaces is missing: pip install spaces") from error
    return GPU
