"""The lessons as they are written in assets/lessons.json: texts with placeholders, and what a stop shows.

Standard library only. A stop never names a step by its number, because recordings are made anew: it names a rule
(explorer.lessons.steps). It never states a figure either, but a placeholder (explorer.lessons.figures).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache

from explorer.codec import decode
from explorer.config import repo_path
from explorer.errors import TraceError
from explorer.lessons.lab_figures import LAB_FIGURES

_ELSEWHERE = re.compile(r"\{[a-z0-9_]+@([\w.-]+)")  # the recording in a placeholder of explorer.lessons.figures


@dataclass(frozen=True)
class Table:
    """Figures side by side: ``head`` names the columns, each of ``rows`` has as many cells."""

    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Stop:
    """One stop: what is said, and what the viewer shows meanwhile.

    trace: the name of a recording. step: a rule that finds a step in it. text, todo and table may hold placeholders;
    formula: lines of plain text. view, pane: the picture in the middle and what stands beside the tree. moment: the
    kind of moment to stand at, "" for the whole step. pin: a node by its part in the step, "" for none. look: parts of
    the screen that the text speaks of. others: recordings to stand beside this one. has_demo: the histogram of
    acceptance rules is offered, made of this step.
    """

    title: str
    trace: str
    step: str
    text: str
    todo: str
    formula: list[str]
    table: Table | None = None
    view: str = "step"
    pane: str = "mask"
    moment: str = ""
    pin: str = ""
    ghosts: bool = False
    order: str = "tree"
    look: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    has_demo: bool = False


@dataclass(frozen=True)
class Lesson:
    """A few stops on one subject."""

    title: str
    stops: list[Stop]

    @property
    def traces(self) -> set[str]:
        """All recordings that are shown or that figures are taken from."""
        return set().union(*({stop.trace, *stop.others, *_ELSEWHERE.findall(str(stop))} for stop in self.stops))

    @property
    def experiments(self) -> set[str]:
        """All experiments of the laboratory that figures are taken from."""
        return {LAB_FIGURES[name][0] for stop in self.stops for name in LAB_FIGURES if f"{{{name}}}" in str(stop)}


@dataclass(frozen=True)
class _Book:
    lessons: list[Lesson]


@lru_cache(maxsize=1)
def load_lessons() -> tuple[Lesson, ...]:
    """All lessons in their order; raises TraceError where the file is broken."""
    path = repo_path("assets", "lessons.json")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(f"the lessons {path} cannot be read: {error}") from error
    return tuple(decode(_Book, {"lessons": raw}, "lessons").lessons)
