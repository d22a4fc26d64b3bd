"""What an experiment of the laboratory leaves behind: one small JSON file, read again without a model.

A record has trials (one method under one condition), passes (what they cost) and, where the target was changed, what
became of it; each experiment fills what it needs. Standard library only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from explorer.codec import decode, encode
from explorer.config import repo_path
from explorer.errors import ExplorerError, RecordError
from explorer.theory import ModelShape
from explorer.trace import DrafterRecord
from explorer.trace_files import write_atomically

SCHEMA, SCHEMA_VERSION = "draft-tree-laboratory", 1
EXPERIMENTS = ("temperature", "tree", "desync", "batch", "template", "context")
MAX_BYTES = 2**20
MAX_ITEMS = 1000  # of each list of a record


@dataclass(frozen=True)
class Machine:
    """Where it was measured. load_average: at the start; other work makes times dearer, not acceptance."""

    device_name: str
    device: str
    dtype: str
    num_threads: int
    load_average: float | None = None


@dataclass(frozen=True)
class Trial:
    """One method under one condition, over all prompts and seeds. Counts cover complete steps, times are ms a step.

    lane: how the method is called in charts. sweep: what was varied; value: the number it had, or the place of
    ``word`` among the conditions. taus: tau of each single run. num_rows: of the largest pass.
    """

    method: str
    lane: str
    sweep: str
    value: float
    num_steps: int
    num_draft_tokens: int
    num_accepted_draft_tokens: int
    tried_by_depth: list[int]
    accepted_by_depth: list[int]
    num_rows: int
    draft_ms: float
    verify_ms: float
    step_ms: float
    word: str = ""
    taus: list[float] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def tau(self) -> float:
        """Mean acceptance length, the target's own token included."""
        return 1 + self.num_accepted_draft_tokens / self.num_steps

    @property
    def alpha(self) -> float:
        """Of the tree's levels that were reached, the share where a child was accepted; 0 where none was reached.

        For a chain that is the alpha of theory.py; a level of a tree has several children, and any of them counts.
        """
        tried = sum(self.tried_by_depth)
        return sum(self.accepted_by_depth) / tried if tried else 0.0

    @property
    def depth(self) -> int:
        """Levels of the deepest tree that was walked."""
        return len(self.tried_by_depth)


@dataclass(frozen=True)
class Pass:
    """Median milliseconds of one pass over ``num_rows`` rows of each of ``num_sequences`` sequences."""

    num_sequences: int
    num_rows: int
    ms: float


@dataclass(frozen=True)
class Changed:
    """A target with noise on its matrices: agreement is how often it chooses the token that it chose without noise,
    along text of its own; perplexity is its own of that text."""

    noise: float
    agreement: float
    perplexity: float


@dataclass(frozen=True)
class LabRecord:
    """One experiment. settings: what was asked for, in plain values. drafters: by method. date: ISO, UTC.

    trained_length: tokens of the longest text that the drafters were trained on, None where it is not known.
    """

    experiment: str
    date: str
    target: str
    machine: Machine
    settings: dict[str, Any]
    trials: list[Trial]
    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    drafters: dict[str, DrafterRecord] = field(default_factory=dict)
    passes: list[Pass] = field(default_factory=list)
    changed: list[Changed] = field(default_factory=list)
    shape: ModelShape | None = None
    target_bytes: int | None = None
    trained_length: int | None = None
    seconds: float | None = None

    def lanes(self) -> dict[str, list[Trial]]:
        """Lane -> its trials, in the order in which they were made."""
        found: dict[str, list[Trial]] = {}
        for trial in self.trials:
            found.setdefault(trial.lane, []).append(trial)
        return found

    def pass_ms(self, num_sequences: int, num_rows: int) -> float | None:
        """Milliseconds of a pass that was measured, None for any other."""
        wanted = (num_sequences, num_rows)
        return next((item.ms for item in self.passes if (item.num_sequences, item.num_rows) == wanted), None)


def records_folder() -> Path:
    """Where the recorded results lie that the page shows."""
    return repo_path("assets", "laboratory")


def record_text(record: LabRecord) -> str:
    """The record as strict JSON, numbers rounded to what was measured."""
    return json.dumps(_rounded(encode(record)), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def write_record(record: LabRecord, path: Path) -> None:
    """Write a record whole or not at all; raises TraceError where the folder refuses."""
    write_atomically(path, record_text(record).encode())


def read_record(path: Path) -> LabRecord:
    """The record in a file; raises RecordError in one sentence for anything that is none."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise RecordError(f"larger than {MAX_BYTES // 2**20} MiB")
        record = decode(LabRecord, json.loads(data.decode("utf-8")), "record")
        _check(record)
    except (OSError, ValueError, RecursionError, ExplorerError) as error:
        said = getattr(error, "strerror", None) or str(error) or "nested too deep"
        raise RecordError(f"{path.name} is no record of the laboratory: {said}") from error
    return record


def read_records(folder: Path) -> dict[str, LabRecord | str | None]:
    """Each experiment's record in a folder: None where there is none, a sentence where it cannot be read."""
    return {name: _found(folder / f"{name}.json", name) for name in EXPERIMENTS}


@lru_cache(maxsize=1)
def shown_records() -> dict[str, LabRecord]:
    """Those of the project's own folder that can be read, once a process."""
    return {name: found for name, found in read_records(records_folder()).items() if isinstance(found, LabRecord)}


def _found(path: Path, name: str) -> LabRecord | str | None:
    if not path.exists():
        return None
    try:
        record = read_record(path)
    except RecordError as error:
        return str(error)
    return record if record.experiment == name else f"{path.name} holds the experiment {record.experiment!r}"


def _check(record: LabRecord) -> None:
    """What the words and charts rest on; raises RecordError."""
    if record.schema != SCHEMA or record.schema_version != SCHEMA_VERSION:
        raise RecordError(f"its schema is {record.schema!r} {record.schema_version}, not {SCHEMA!r} {SCHEMA_VERSION}")
    if record.experiment not in EXPERIMENTS:
        raise RecordError(f"unknown experiment {record.experiment!r}; known: {', '.join(EXPERIMENTS)}")
    for name in ("trials", "passes", "changed"):
        if len(getattr(record, name)) > MAX_ITEMS:
            raise RecordError(f"record.{name}: more than {MAX_ITEMS} items")
    if not record.trials:
        raise RecordError("record.trials: empty")
    for number, trial in enumerate(record.trials):
        _check_trial(trial, f"record.trials[{number}]")
    if any(item.num_sequences < 1 or item.num_rows < 1 or item.ms <= 0 for item in record.passes):
        raise RecordError("record.passes: rows, sequences and times must be above 0")
    if any(not 0 <= item.agreement <= 1 or item.perplexity <= 0 for item in record.changed):
        raise RecordError("record.changed: agreement goes from 0 to 1, perplexity is above 0")
    if record.shape is not None and min(vars(record.shape).values()) < 1:
        raise RecordError("record.shape: every number must be above 0")


def _check_trial(trial: Trial, where: str) -> None:
    counts = list(zip(trial.accepted_by_depth, trial.tried_by_depth, strict=False))
    if len(trial.tried_by_depth) != len(trial.accepted_by_depth) or any(not 0 <= a <= n for a, n in counts):
        raise RecordError(f"{where}: accepted_by_depth does not fit tried_by_depth")
    if trial.num_steps < 1 or not 0 <= trial.num_accepted_draft_tokens <= trial.num_draft_tokens:
        raise RecordError(f"{where}: its counts do not fit each other")
    if trial.draft_ms < 0 or min(trial.verify_ms, trial.step_ms) <= 0 or trial.num_rows < 1:
        raise RecordError(f"{where}: times and rows must be above 0")


def _rounded(value: Any) -> Any:
    """Floats with six significant digits: more was never measured."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
