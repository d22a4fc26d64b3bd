"""A runner without a model: plays a synthetic trace through the same events as explorer.runner."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from explorer.kernel_words import AttentionTime, CommitTime, KernelCost
from explorer.prediction import CostReport, DeviceCost, Prediction
from explorer.runner_events import (
    BaselineProgress,
    DeviceState,
    Event,
    Finished,
    Notice,
    RunRequest,
    Started,
    Status,
    Stepped,
)
from explorer.trace import Output, Trace


@dataclass
class FakeRunner:
    """Plays ``trace`` with ``step_ms`` between events; remembers requests and whether each run was closed.

    error: raised in place of the first step.
    """

    trace: Trace
    step_ms: float = 0.0
    error: Exception | None = None
    requests: list[RunRequest] = field(default_factory=list)
    num_closed: int = 0
    device: threading.Lock = field(default_factory=threading.Lock)

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """One run; the device is free again when the generator is closed, however that comes about."""
        self.requests.append(request)
        with self.device:
            try:
                yield from self._play(request)
            finally:
                self.num_closed += 1

    def state(self) -> DeviceState:
        """Busy while a run holds the device."""
        return DeviceState(True, self.device.locked())

    def measure(self, request: RunRequest, methods: Sequence[str]) -> Generator[Status, None, CostReport]:
        """Two statuses and a small report."""
        self.requests.append(request)
        yield Status("waiting for the device: 1 ahead")
        yield Status("measuring what a pass costs here", 0.5)
        if self.error is not None:
            raise self.error
        cost = DeviceCost("a processor", "float32", 2, 256, {1: 40.0, 8: 50.0, 64: 160.0})
        trees = [Prediction({"depth": 2, "total_tokens": 8}, 1.6, 56.0, 1.4, 28.6, 1.14)]
        attention = [AttentionTime("naive", 0.5, 1e-7), AttentionTime("row by row (bitwise)", 2.0, 2e-7)]
        commits = [CommitTime("rows, naive", 32.0, 33.0, 0.6), CommitTime("slots", 4.3, 4.3, 10.0)]
        kernels = KernelCost(60, 5, 256, attention, commits, "it needs an NVIDIA GPU")
        return CostReport("tiny", cost, {"EAGLE-2": trees}, kernels)

    def _play(self, request: RunRequest) -> Generator[Event, None, None]:
        yield Status("loading the target", 0.5)
        yield Notice("depth must be at most 8, not 99: 8 is used")
        yield BaselineProgress(5, request.max_new_tokens, "What plain decoding wrote <b>first</b>")
        if self.error is not None:
            raise self.error
        trace = replace(self.trace, prompt=replace(self.trace.prompt, text=request.prompt or ""))
        yield Started(replace(trace, steps=[], output=Output([trace.first_token], "")))
        for step in trace.steps:
            time.sleep(self.step_ms / 1000)
            yield Stepped(step, {}, f"step {step.index}")
        yield Finished(trace)
