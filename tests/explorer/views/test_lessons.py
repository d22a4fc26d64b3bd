"""Every stop of every lesson is resolved against the recordings: all filled in, all found, short enough to read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from explorer.errors import TraceError
from explorer.lab_records import EXPERIMENTS, shown_records
from explorer.lessons.data import load_lessons
from explorer.lessons.figures import Recordings
from explorer.microsteps import micro_steps
from explorer.trace import Trace
from explorer.views.lessons import LOOKS, offered_lessons, stop_view
from explorer.views.viewer import view_step
from tests.support.recorded import EQUAL, RECORDED, recorded

PLACES = [(i, j) for i, lesson in enumerate(load_lessons()) for j in range(len(lesson.stops))]
LONGEST = {"title": 48, "text": 340, "todo": 130}
FORMULA_LINE = 34  # monospace characters in the lessons' column
KEPT: dict[str, Trace] = {}


def read(name: str) -> Trace:
    """The recordings stay in memory here: most are needed by several stops."""
    return KEPT.setdefault(name, recorded(name))


def view(lesson: int, stop: int) -> dict[str, Any]:
    return stop_view(Recordings(EQUAL, read, shown_records()), lesson, stop)


@pytest.mark.parametrize(("lesson", "stop"), PLACES)
def test_a_stop_is_complete(lesson: int, stop: int) -> None:
    found = view(lesson, stop)
    cells = (
        [*found["table"]["head"], *(cell for row in found["table"]["rows"] for cell in row)] if found["table"] else []
    )
    for text in (found["title"], found["text"], found["todo"], *found["formula"], *cells):
        assert not re.search(r"[{}]|None|nan", text), text
    for name, most in LONGEST.items():
        assert 0 < len(found[name]) <= most, (name, len(found[name]))
    assert 1 <= len(found["formula"]) <= 4
    assert max(map(len, found["formula"])) <= FORMULA_LINE
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("lesson", "stop"), PLACES)
def test_a_stop_stands_where_the_record_has_something(lesson: int, stop: int) -> None:
    found = view(lesson, stop)
    trace = read(found["trace"])
    step = trace.steps[found["step"]]
    if found["pin"] is not None:
        assert 0 <= found["pin"] <= len(step.tree) + len(step.ghosts)
        if len(step.tree) <= found["pin"] < len(step.tree) + len(step.ghosts):
            assert found["ghosts"], "a pinned ghost must be on screen"
    if found["moment"] is not None:
        assert 0 <= found["moment"] < len(micro_steps(trace, step))
    assert all(look in LOOKS or look.startswith("fact:") for look in found["look"])
    assert (found["demo"] is not None) == (found["pane"] == "histogram")
    if found["demo"]:
        assert {str(token) for token in found["demo"]["tokens"]} <= found["vocab"].keys()
    assert view_step(trace, step)["i"] == found["step"]


def test_the_contents_go_with_every_stop() -> None:
    lessons = view(0, 0)["lessons"]
    assert [len(lesson["stops"]) for lesson in lessons] == [len(lesson.stops) for lesson in load_lessons()]
    assert lessons[3]["title"] == "The tree mask"


def test_a_lesson_without_its_recordings_is_not_offered() -> None:
    assert len(offered_lessons(RECORDED, EXPERIMENTS)) == len(load_lessons())
    without = [lesson.title for lesson in offered_lessons(RECORDED, ["tree", "batch"])]
    assert len(without) == len(load_lessons()) - 1 and "When speculation loses" not in without
    assert offered_lessons([], EXPERIMENTS) == []
    some = [name for name in RECORDED if "typical" not in name]
    assert "Lossless acceptance" not in [lesson.title for lesson in offered_lessons(some, EXPERIMENTS)]
    only = ["medusa-maths", "medusa-code", "medusa-code-64"]
    assert offered_lessons(only, EXPERIMENTS) == [], "what its figures are taken from must be there as well"
    titles = [lesson.title for lesson in offered_lessons([*only, "eagle2-code"], EXPERIMENTS)]
    assert titles[1] == "Medusa and its static tree"


@pytest.mark.parametrize("place", [(-1, 0), (0, -1), (len(load_lessons()), 0), (0, 99)])
def test_a_stop_that_does_not_exist_is_an_error(place: tuple[int, int]) -> None:
    with pytest.raises(TraceError, match="There is no stop"):
        view(*place)


def test_no_recordings_no_lessons() -> None:
    with pytest.raises(TraceError, match="no lessons here"):
        stop_view(Recordings({}, read), 0, 0)
