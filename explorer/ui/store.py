"""Which traces the page can show: recorded ones by name, a visitor's own runs by an id nobody can guess."""

from __future__ import annotations

import json
import secrets
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from explorer.errors import TraceError
from explorer.metrics import compute_stats
from explorer.runner_events import RunRequest, Stepped
from explorer.trace import Label, Output, Step, Trace, read_trace

T = TypeVar("T")

ID_BYTES = 16
NUM_PARSED_RECORDINGS = 16
UNKNOWN_ID = "This run is no longer kept on the server. Start it again, or open the trace file if you saved one."


@dataclass(frozen=True)
class Recording:
    """One entry of the manifest; ``name`` is its public id, the file name without its endings.

    output_equal: whether the output is that of plain decoding, None where they were not compared.
    """

    name: str
    title: str
    method: str
    target: str
    device: str
    date: str
    prompt: str
    path: Path
    output_equal: bool | None


class Library:
    """The recorded traces of a folder with a ``manifest.json``; only names from the manifest can be opened."""

    def __init__(self, folder: Path) -> None:
        self._recordings = {item.name: item for item in _read_manifest(folder)}
        self._read = lru_cache(maxsize=NUM_PARSED_RECORDINGS)(read_trace)
        self._made: dict[tuple[str, str], object] = {}

    def __iter__(self) -> Iterator[Recording]:
        return iter(self._recordings.values())

    def __len__(self) -> int:
        return len(self._recordings)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._recordings

    def __getitem__(self, name: str) -> Recording:
        return self._recordings[name]

    def trace(self, name: str) -> Trace:
        """The parsed trace, kept for the next visitor; raises TraceError where the file is missing or broken."""
        return self._read(self._recordings[name].path)

    def once(self, name: str, make: Callable[[Trace, str], T]) -> T:
        """What ``make`` makes of a recorded trace and its name, made for the first visitor and kept for the others."""
        key = (name, make.__qualname__)
        if key not in self._made:
            self._made[key] = make(self.trace(name), name)
        return self._made[key]  # type: ignore[return-value]


@dataclass
class _Run:
    trace: Trace
    num_bytes: int
    steps: list[Step] = field(default_factory=list)
    vocab: dict[str, Label] = field(default_factory=dict)
    text: str | None = None
    is_done: bool = False
    request: RunRequest | None = None

    def snapshot(self) -> Trace:
        """The run so far as a trace of its own; the caller may read it while further steps arrive."""
        if self.is_done:
            return self.trace
        steps = list(self.steps)
        tokens = [self.trace.first_token, *(token for step in steps for token in step.emitted)]
        baseline_speed = self.trace.baseline.tokens_per_second if self.trace.baseline else None
        return replace(
            self.trace,
            steps=steps,
            vocab=self.trace.vocab | self.vocab,
            output=Output(tokens, self.trace.output.text if self.text is None else self.text),
            stats=compute_stats(steps, len(tokens), baseline_speed),
        )


class TraceStore:
    """Runs by id, the least recently used forgotten first. Every method may be called from any thread.

    max_bytes bounds what all of them take in memory, by estimate; the newest run is kept whatever its size.
    """

    def __init__(self, library: Library, max_runs: int, max_bytes: int = 2**28) -> None:
        self.library = library
        self._max_runs = max_runs
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def num_bytes(self) -> int:
        """Estimated memory of the runs that are kept."""
        return self._num_bytes

    def open(self, trace: Trace, *, is_done: bool = False, request: RunRequest | None = None) -> str:
        """Keep a run that has just started (or is complete) with what was asked for, and return its id."""
        run_id = secrets.token_urlsafe(ID_BYTES)
        self._put(run_id, _Run(trace, memory_of(trace), list(trace.steps), is_done=is_done, request=request))
        return run_id

    def append(self, run_id: str, event: Stepped) -> int:
        """Add a step with the labels it brought; returns the number of steps. A forgotten run stays forgotten."""
        num_bytes = memory_of(event.step) + memory_of(event.vocab)
        with self._lock:
            run = self._runs.get(run_id)
            if run is None:
                return event.step.index + 1
            run.steps.append(event.step)
            run.vocab.update(event.vocab)
            run.text = event.text
            run.num_bytes += num_bytes
            self._num_bytes += num_bytes
            self._runs.move_to_end(run_id)
            self._make_room()
            return len(run.steps)

    def finish(self, run_id: str, trace: Trace) -> None:
        """Replace the run by its complete trace."""
        self._replace(run_id, trace)

    def cancel(self, run_id: str, stop: str = "cancelled") -> None:
        """Close a run where it stands; nothing happens to one that is complete."""
        with self._lock:
            run = self._runs.get(run_id)
            snapshot = None if run is None or run.is_done else run.snapshot()
        if snapshot is not None:
            self._replace(run_id, replace(snapshot, stop=stop))

    def request(self, run_id: str) -> RunRequest | None:
        """What a run was asked for; None where the trace came without a run, or is not known."""
        with self._lock:
            run = self._runs.get(run_id)
            return run.request if run else None

    def _replace(self, run_id: str, trace: Trace) -> None:
        if run_id in self._runs:
            run = _Run(trace, memory_of(trace), is_done=True, request=self.request(run_id))
            self._put(run_id, run, is_new=False)

    def _put(self, run_id: str, run: _Run, *, is_new: bool = True) -> None:
        with self._lock:
            old = self._runs.pop(run_id, None)
            if old is None and not is_new:
                return
            self._num_bytes += run.num_bytes - (old.num_bytes if old else 0)
            self._runs[run_id] = run
            self._make_room()

    def _make_room(self) -> None:
        while len(self._runs) > self._max_runs or (self._num_bytes > self._max_bytes and len(self._runs) > 1):
            _, forgotten = self._runs.popitem(last=False)
            self._num_bytes -= forgotten.num_bytes

    def get(self, trace_id: str) -> tuple[Trace, bool]:
        """The trace and whether it is complete; raises TraceError for an id that is not known (any more)."""
        if trace_id in self.library:
            return self.library.trace(trace_id), True
        with self._lock:
            run = self._runs.get(trace_id)
            if run is None:
                raise TraceError(UNKNOWN_ID)
            self._runs.move_to_end(trace_id)
            return run.snapshot(), run.is_done


def memory_of(value: object) -> int:
    """Estimated bytes of a record: its containers, texts and numbers, none of them counted as shared."""
    total, rest = 0, [value]
    while rest:
        item = rest.pop()
        total += sys.getsizeof(item)
        if isinstance(item, dict):
            rest += item.keys()
            rest += item.values()
        elif isinstance(item, list | tuple):
            rest += item
        elif is_dataclass(item):
            rest += [getattr(item, one.name) for one in fields(item)]
    return total


def _read_manifest(folder: Path) -> list[Recording]:
    """The manifest's entries; an absent manifest is an empty library, a broken one raises TraceError."""
    path = folder / "manifest.json"
    if not path.exists():
        return []
    try:
        return [_recording(entry, folder) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TraceError(f"the manifest {path} cannot be read: {error!r}") from error


def _recording(entry: dict[str, object], folder: Path) -> Recording:
    file = str(entry["file"])
    if Path(file).name != file:
        raise ValueError(f"{file!r} is not a plain file name")
    text = {key: str(entry.get(key) or "") for key in ("title", "method", "target", "device", "date", "prompt")}
    equal = entry.get("output_equal")
    equal = equal if isinstance(equal, bool) else None
    return Recording(name=file.split(".")[0], path=folder / file, output_equal=equal, **text)
