"""Computations over tensors that never move: captured once as a CUDA graph and replayed, or called again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
NUM_COMPARED = 2  # repetitions: the first where it was captured, the second where what was baked in would show
_TOLERANCE = 1e-2  # between numbers that the same kernels compute
_NUM_WARM_UP = 3  # first calls compile kernels and make workspaces, which cannot be captured


class Capture(Protocol):
    """Turns a computation into one that can be repeated: equal tensors in, the same tensors out, filled anew."""

    def __call__(self, work: Callable[[], T], /) -> Callable[[], T]: ...


def call_again(work: Callable[[], T], /) -> Callable[[], T]:
    """The plain twin: repeats the computation itself, on any device."""
    return work


def cuda_graph(work: Callable[[], T], /) -> Callable[[], T]:
    """Capture what ``work`` launches; a replay launches all of it at once, and returns what the capture returned.

    work: reads and writes tensors on the current CUDA device, asks nothing of it, and launches the same whatever they
    hold. Raises RuntimeError where it does not keep to that. It is run a few times first.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_NUM_WARM_UP):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may serve other work
        captured = work()

    def replay() -> T:
        graph.replay()
        return captured

    return replay


class Repeated(Generic[T]):
    """A computation that is captured when it first runs; where that fails or gives other numbers, it is called again.

    telling: of its results, the numbers by which a repetition is compared with a call the first times.
    """

    def __init__(self, work: Callable[[], T], capture: Capture, telling: Callable[[T], Tensor]) -> None:
        self._work, self._capture, self._telling = work, capture, telling
        self._replay: Callable[[], T] | None = None
        self._num_compared = 0

    @property
    def execution(self) -> str:
        """How it runs: "graphed", or "eager" after a failure."""
        return "eager" if self._replay is self._work else "graphed"

    def __call__(self) -> T:
        """The results for the tensors as they are now; a later call may overwrite them."""
        if self._replay is None:
            try:
                self._replay = self._capture(self._work)
            except RuntimeError:
                self._replay = self._work
        results = self._replay()
        if self._num_compared == NUM_COMPARED or self.execution == "eager":
            return results
        self._num_compared += 1
        called = self._work()
        got, expected = self._telling(results).float(), self._telling(called).float()
        if not torch.allclose(got, expected, atol=_TOLERANCE, rtol=_TOLERANCE):
            self._replay = self._work
        return called
