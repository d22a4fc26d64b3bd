"""What the benchmark keeps of one method on one question, and the file that holds it. Standard library only.

A results file is JSON lines: what was measured, then one measurement a line, each written whole as soon as it is there;
so a kill costs at most the prompt under way, and running again goes on. Several processes each write a file of their
own and read each other's (explorer.shards).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.codec import decode, encode
from explorer.errors import SettingError, TraceError
from explorer.metrics import HeadCount
from explorer.trace import DrafterRecord


@dataclass(frozen=True)
class ClientView:
    """What a client of a server saw of one answer: when (seconds since the epoch), its pieces, its words."""

    started_s: float
    ended_s: float
    gaps_ms: list[float]  # between one piece of the stream and the next
    num_tokens: int  # as the server counts them
    text: str
    is_counted_by_pieces: bool = False  # the server told no count


@dataclass(frozen=True)
class Measurement:
    """One method on one question. Times are milliseconds; the counts cover complete steps."""

    question_id: str
    category: str
    method: str  # its lane: a method, or METHOD:LABEL
    output: list[int]
    stop: str
    num_prompt_tokens: int
    prefill_ms: float
    decode_ms: float  # without prefill and recording
    split_ms: dict[str, float] = field(default_factory=dict)  # draft, verify, commit, other, record
    num_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0
    acceptance_histogram: list[int] = field(default_factory=list)
    tried_by_depth: list[int] = field(default_factory=list)
    accepted_by_depth: list[int] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)  # top-2 logit gap a token; kept for the autoregressive lane only
    settings: dict[str, Any] = field(default_factory=dict)  # as resolved: `auto` is a number here
    drafter: DrafterRecord | None = None
    target_bytes: int | None = None  # the target's parameters in the dtype of the run
    heads: list[HeadCount] = field(default_factory=list)  # of drafters whose heads each have a list of their own
    num_rests: int = 0  # of num_steps: plain ones in the place of a draft
    client: ClientView | None = None  # measured over the network: then output is empty, for a stream has no ids

    @property
    def key(self) -> tuple[str, str]:
        """Question and method."""
        return self.question_id, self.method

    @property
    def num_output_tokens(self) -> int:
        """How many tokens were written."""
        return self.client.num_tokens if self.client else len(self.output)

    @property
    def tokens_per_second(self) -> float | None:
        """Prompt pass excluded, and its token with it; None where nothing else was decoded."""
        num_tokens = self.num_output_tokens
        return 1000 * (num_tokens - 1) / self.decode_ms if num_tokens > 1 and self.decode_ms > 0 else None


class ResultsFile:
    """Append-only results of one benchmark; opening an existing file continues it."""

    def __init__(
        self,
        path: Path,
        head: dict[str, Any],
        beside: Sequence[Measurement] = (),
        made_on: dict[str, Any] | None = None,
    ) -> None:
        """beside: what other files of the same benchmark hold: known, but not this file's. made_on: the machine.

        Raises SettingError where the file holds results of something else, or cannot be written.
        """
        self._path = path
        self._known = {item.key for item in beside}
        lines = _whole_lines(path, is_owner=True)
        first = {"bench": head} | ({"made_on": made_on} if made_on else {})
        self._head = None if lines else first  # written with the first measurement, not before
        self.measurements = _parse(path, lines, head)
        self._known |= {item.key for item in self.measurements}

    def __contains__(self, key: tuple[str, str]) -> bool:
        return key in self._known

    def add(self, measurement: Measurement) -> None:
        """Write one measurement to the disk before returning."""
        if self._head is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._append(self._head)
            self._head = None
        self._append(encode(measurement))
        self.measurements.append(measurement)
        self._known.add(measurement.key)

    def _append(self, value: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


def read_measurements(path: Path, head: dict[str, Any]) -> list[Measurement]:
    """What a file of the same benchmark holds so far; another process may be writing it. Raises as ResultsFile does."""
    return _parse(path, _whole_lines(path, is_owner=False), head)


def read_machine(path: Path) -> dict[str, Any]:
    """Where a results file was begun; empty where it does not say."""
    lines = _whole_lines(path, is_owner=False)
    try:
        found = json.loads(lines[0]).get("made_on") if lines else None
    except (ValueError, RecursionError, AttributeError) as error:
        raise _foreign(path, error) from error
    return found if isinstance(found, dict) else {}


def _whole_lines(path: Path, *, is_owner: bool) -> list[str]:
    """The complete lines; a last one that a kill cut short is removed from the file by its owner."""
    if path.parent.exists() and not path.parent.is_dir():
        raise SettingError(f"{path.parent} is a file: name a folder for --out")
    try:
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if is_owner and len(whole) < len(data):
            os.truncate(path, len(whole))
        return whole.decode("utf-8").splitlines()
    except OSError as error:
        raise SettingError(f"{path} cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise _foreign(path, error) from error


def _parse(path: Path, lines: list[str], head: dict[str, Any]) -> list[Measurement]:
    try:
        rows = [json.loads(line) for line in lines]
        # Two processes that began the file at the same moment each wrote a first line.
        heads = [row.get("bench") for number, row in enumerate(rows) if number == 0 or _is_head(row)]
        if any(found != json.loads(json.dumps(head)) for found in heads):
            raise SettingError(f"{path} holds results of other settings, a target or questions: choose another --out")
        return [decode(Measurement, row, "measurement") for row in rows[1:] if not _is_head(row)]
    except (ValueError, RecursionError, AttributeError, TraceError) as error:
        raise _foreign(path, error) from error


def _is_head(row: object) -> bool:
    return isinstance(row, dict) and "bench" in row


def _foreign(path: Path, error: Exception) -> SettingError:
    return SettingError(f"{path} is no results file of this program ({error}): choose another --out")
