"""What a run is asked for and what it reports: plain values, so that a screen needs no torch to read them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from explorer.config import DEFAULT_TARGET, Sampling
from explorer.trace import Label, Step, Trace

E = TypeVar("E")
T = TypeVar("T")


@dataclass(frozen=True)
class RunRequest:
    """One prompt, one method. Exactly one of ``prompt``, ``messages`` and ``prompt_ids`` is given.

    messages: ``{"role", "content"}`` objects, several turns. system: put before either, not before ``prompt_ids``.
    settings: values or strings by setting name, on top of the preset's (None: the one of this device). target: a
    preset's name, a directory or a hub id. drafter: a directory or hub id, None for the preset's own. is_adaptive: drop
    to plain decoding while speculation costs time (explorer.fallback). max_prompt_tokens: a longer prompt is refused
    (None: what the target reads). adapter: the drafter, a directory or hub id, whose adapter the target has where the
    run's own brings none: runs that are compared have one target.
    """

    method: str
    prompt: str | None = None
    messages: tuple[Mapping[str, str], ...] | None = None
    prompt_ids: tuple[int, ...] | None = None
    system: str | None = None
    max_new_tokens: int = 128
    sampling: Sampling = field(default_factory=Sampling)
    settings: Mapping[str, object] = field(default_factory=dict)
    preset: str | None = None
    target: str = DEFAULT_TARGET
    drafter: str | None = None
    adapter: str | None = None
    baseline: bool = True
    ignore_stop: bool = False
    is_adaptive: bool = False
    use_chat_template: bool = True
    dtype: str = "auto"
    device: str = "auto"
    backend: str = "auto"
    cache: str = "rows"
    numerics: str = "fast"
    execution: str = "auto"
    max_prompt_tokens: int | None = None


@dataclass(frozen=True)
class Status:
    """What the run is doing now, in a few words; ``fraction`` 0..1 where it is known.

    num_ahead: how many runs come first while this one waits for the device; 0 once it has it.
    """

    text: str
    fraction: float | None = None
    num_ahead: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Notice:
    """Something that was changed for the visitor, in one sentence: a clamped setting."""

    text: str


@dataclass(frozen=True)
class BaselineProgress:
    """The autoregressive lane so far; ``text`` is what it wrote."""

    num_tokens: int
    max_new_tokens: int
    text: str = ""


@dataclass(frozen=True)
class Started:
    """The prompt pass is done; ``trace`` has everything known before the first step, and is valid as it is."""

    trace: Trace


@dataclass(frozen=True)
class Stepped:
    """One step, with the labels that ``Started`` and earlier steps did not bring; ``text`` is the output so far."""

    step: Step
    vocab: dict[str, Label]
    text: str = ""


@dataclass(frozen=True)
class Finished:
    """The complete trace: the last event of a run that was not closed before."""

    trace: Trace


@dataclass(frozen=True)
class DeviceState:
    """What a runner does at this moment: whether a run has the device, how many wait, whether it could begin at all."""

    is_loaded: bool
    is_busy: bool = False
    num_waiting: int = 0


Event: TypeAlias = Status | Notice | BaselineProgress | Started | Stepped | Finished


def drain(work: Generator[E, None, T], on_event: Callable[[E], object] = lambda _event: None) -> T:
    """What a generator of events returns; each event is handed to ``on_event``."""
    while True:
        try:
            event = next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        on_event(event)
