"""A benchmark in shards: several processes or machines measure a share of the questions each, into one folder.

Each writes a results file of its own and reads the others', so nothing is locked. A share is every n-th question, so
that categories which follow each other in the file are spread. Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from explorer.errors import SettingError
from explorer.measurement import Measurement, read_machine, read_measurements

T = TypeVar("T")
MAX_SHARDS = 10_000
WHOLE = "results.jsonl"
REPORTS = ("report.json", "report.md", "report.html")
_SHARD = re.compile(r"([1-9]\d{0,4})/([1-9]\d{0,4})")


@dataclass(frozen=True)
class Shard:
    """One share of the questions: ``number`` of ``count``, from 1 on."""

    number: int
    count: int

    def share(self, questions: Sequence[T]) -> list[T]:
        """Those of the questions that are this shard's, in their order."""
        return list(questions[self.number - 1 :: self.count])

    @property
    def file_name(self) -> str:
        """Its results file in the shared folder."""
        return f"results-{self.number}-of-{self.count}.jsonl"


def read_shard(text: str | None) -> Shard | None:
    """``K/N`` as a shard, None for None; raises SettingError for anything else."""
    if text is None:
        return None
    match = _SHARD.fullmatch(text)
    if match is None or not int(match[1]) <= int(match[2]) <= MAX_SHARDS:
        raise SettingError(f"--shard {text}: give K/N with K from 1 to N and N at most {MAX_SHARDS}, as in 1/4")
    return Shard(int(match[1]), int(match[2]))


def results_path(folder: Path, shard: Shard | None) -> Path:
    """The results file that a process writes; SettingError where reports would go over files that are not ours."""
    there = [name for name in REPORTS if (folder / name).exists()]
    if there and not _files(folder):
        raise SettingError(
            f"{folder} holds {', '.join(there)} and no results they could be of: choose another --out, nothing is "
            "written over"
        )
    return folder / (shard.file_name if shard else WHOLE)


def read_beside(folder: Path, own: Path | None, head: dict[str, Any]) -> list[Measurement]:
    """What all results files of the folder but ``own`` hold; raises SettingError where one is of something else."""
    return [item for path in _files(folder) if path != own for item in read_measurements(path, head)]


def read_machines(folder: Path) -> dict[str, Any]:
    """Where the results of a folder were made: the facts themselves where all agree, else by file as ``machines``."""
    by_file = {path.name: facts for path in _files(folder) if (facts := read_machine(path))}
    several = {json.dumps(facts, sort_keys=True) for facts in by_file.values()}
    return {"machines": by_file} if len(several) > 1 else next(iter(by_file.values()), {})


def _files(folder: Path) -> list[Path]:
    return sorted({*folder.glob(WHOLE), *folder.glob("results-*-of-*.jsonl")})


def merge(measurements: Sequence[Measurement], questions: Sequence[str], lanes: Sequence[str]) -> list[Measurement]:
    """Each measurement once, by question and then by lane: whoever measured them, and when, the order is the same.

    Of what was measured twice the first is kept. questions, lanes: ids and names in the benchmark's order.
    """
    found: dict[tuple[str, str], Measurement] = {}
    for item in measurements:
        found.setdefault(item.key, item)
    return [found[question, lane] for question in questions for lane in lanes if (question, lane) in found]


def missing(measurements: Sequence[Measurement], questions: Sequence[str], lanes: Sequence[str]) -> list[str]:
    """Ids of the questions that a lane has not been measured on yet."""
    known = {item.key for item in measurements}
    return [question for question in questions if any((question, lane) not in known for lane in lanes)]
