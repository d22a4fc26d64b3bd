"""Runs requests on one device, one at a time: load, measure plain decoding, decode with the method, compare.

The run is a generator of events. Closing it (a visitor pressed Stop, a tab was closed) frees the device at once, that
is, within the step that is under way.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
import traceback
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch

from explorer.checkpoints import smollm2
from explorer.cost import report_costs
from explorer.device_queue import DeviceQueue
from explorer.engine import DecodeOptions, Decoding
from explorer.errors import DeviceError
from explorer.fallback import FallbackPolicy
from explorer.loading import ModelStore, check_placement
from explorer.methods.autoregressive import Autoregressive
from explorer.methods.base import Method, NoSettings
from explorer.prediction import CostReport
from explorer.run_setup import Run, check_request, prepare_run
from explorer.run_trace import Lane, begin_trace, finish_trace
from explorer.runner_events import BaselineProgress, DeviceState, Event, Finished, RunRequest, Started, Status, Stepped
from explorer.text import decode
from explorer.trace import Step
from explorer.trace_check import used_ids

NUM_WARM_UP_STEPS = 3
NUM_WARM_UP_PROMPT = 32  # tokens of the prompt that a warm-up reads
PROGRESS_SECONDS = 0.2
NON_FINITE = "the target's numbers are not finite on this prompt: try --dtype float32, or bfloat16 instead of float16"
E = TypeVar("E")
T = TypeVar("T")

OUT_OF_MEMORY = "the device ran out of memory: use a shorter prompt, fewer rows or a smaller dtype"


class Runner:
    """Keeps loaded models and one device; ``run`` may be called from any thread."""

    def __init__(self) -> None:
        self._store = ModelStore()
        self._queue = DeviceQueue()

    def fetch_default_target(self) -> None:
        """Begin in the background to bring the default target unless it is here; runs that wait show its progress."""
        if not smollm2.is_fetched():
            self._store.default_target.begin()

    def state(self) -> DeviceState:
        """What the device does now; may be asked at any time, from any thread."""
        num_tickets = len(self._queue)
        return DeviceState(True, num_tickets > 0, max(num_tickets - 1, 0))

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        """Events of one run, ``Finished`` last. Raises ExplorerError subclasses for what the asker can mend."""
        options = check_request(request)
        yield from self._on_device(self._decode(request, options))

    def measure(
        self, request: RunRequest, methods: Sequence[str], drafters: Mapping[str, str] | None = None
    ) -> Generator[Status, None, CostReport]:
        """What passes cost on this device and what trees of these methods gain; the request names the target.

        drafters: sources by method, where they are not the request's. Raises ExplorerError subclasses for what the
        asker can mend.
        """
        check_placement(request)
        return (yield from self._on_device(report_costs(request, methods, self._store, drafters)))

    def _on_device(self, work: Generator[E, None, T]) -> Generator[E | Status, None, T]:
        """Wait in line, then do the work; the device is free again when it ends or is closed."""
        ticket = object()
        try:
            for num_ahead in self._queue.enter(ticket):
                yield Status(f"waiting for the device: {num_ahead} ahead", num_ahead=num_ahead)
            return (yield from work)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            forget_tensors(error)
            raise DeviceError(OUT_OF_MEMORY) from None
        finally:
            self._queue.leave(ticket)

    def _decode(self, request: RunRequest, options: DecodeOptions) -> Generator[Event, None, None]:
        run = yield from prepare_run(request, options, self._store)
        lane = None
        if request.baseline and request.method != Autoregressive.name:
            lane = yield from _measure_baseline(run)
        yield from _run_method(run, lane)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: on a GPU, in Python, or in PyTorch's allocator for the CPU, which has no class for it."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def forget_tensors(error: BaseException) -> None:
    """Let go of what the failed pass had in its hands, so that the next run finds the memory free."""
    traceback.clear_frames(error.__traceback__)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _measure_baseline(run: Run) -> Generator[Event, None, Lane]:
    """Decode plainly to the end; progress at most every PROGRESS_SECONDS, so that a screen does not slow it down."""
    yield BaselineProgress(0, run.request.max_new_tokens)
    plain = dataclasses.replace(run.options.sampling, acceptance=None)  # the target's own sampling, whatever the rule
    run = dataclasses.replace(run, options=dataclasses.replace(run.options, sampling=plain))
    decoding = warm_decoding(run, Autoregressive(run.models.target, None, NoSettings()))
    decoding.prefill()
    ms_per_token, told = list[float](), time.monotonic()
    for step in decoding.steps():
        ms_per_token.append(step.ms.total)
        if time.monotonic() - told > PROGRESS_SECONDS:
            text = decode(run.models.target.tokenizer, decoding.output)
            yield BaselineProgress(len(decoding.output), run.request.max_new_tokens, text)
            told = time.monotonic()
    return Lane(decoding.output, decoding.gaps, ms_per_token)


def _run_method(run: Run, lane: Lane | None) -> Iterator[Event]:
    """The method's own lane: Started, one Stepped a step, Finished."""
    fallback = None
    if run.request.is_adaptive:
        fallback = FallbackPolicy(statistics.median(lane.ms_per_token) if lane and lane.ms_per_token else None)
    decoding = warm_decoding(run, run.method, fallback)
    decoding.prefill()
    if not decoding.output:
        raise DeviceError(NON_FINITE)
    trace = begin_trace(run, decoding, lane)
    yield Started(trace)
    vocab, steps = dict(trace.vocab), list[Step]()
    for step in decoding.steps():
        steps.append(step)
        shown = used_ids(step) | _extra_ids(step.extra)
        new = run.models.labeler.labels(sorted(token for token in shown if str(token) not in vocab))
        vocab |= new
        yield Stepped(step, new, decode(run.models.target.tokenizer, decoding.output))
    yield Finished(finish_trace(run, dataclasses.replace(trace, steps=steps, vocab=vocab), decoding, lane))


def warm_decoding(run: Run, method: Method, fallback: FallbackPolicy | None = None) -> Decoding:
    """A decoding of the request after a few untimed steps of ``method``.

    First passes pay for allocations and lazily made kernels that neither lane should be charged; so does a cache that
    is made larger than the rehearsal needs.
    """
    decoding = Decoding(run.models.target, method, run.prompt.token_ids, run.options, fallback)
    run.models.target.start(decoding.capacity, run.options.cache, method.feature_layers)
    options = dataclasses.replace(run.options, max_new_tokens=1 + NUM_WARM_UP_STEPS, ignore_stop=True)
    rehearsal = Decoding(run.models.target, method, run.prompt.token_ids[:NUM_WARM_UP_PROMPT], options)
    rehearsal.prefill()
    for _ in rehearsal.steps():
        pass
    return decoding


def _extra_ids(value: Any, are_tokens: bool = False) -> set[int]:
    """Token ids in a step's ``extra``: every integer below a name that ends in ``_tokens``; elsewhere a pair of an
    integer and a float is a token with its probability."""
    if isinstance(value, dict):
        return set().union(*(_extra_ids(inner, name.endswith("_tokens")) for name, inner in value.items()))
    if not isinstance(value, list | tuple):
        return {value} if are_tokens else set()
    if len(value) == 2 and type(value[0]) is int and type(value[1]) is float:
        return {value[0]}
    return set().union(*(_extra_ids(inner, are_tokens) for inner in value))
