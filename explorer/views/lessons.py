"""A lesson's stop as JSON for the viewer: its texts with their figures, and where the viewer shall stand.

``stop_view`` gives {"lesson", "stop", "lessons": [{"title", "stops": [title]}], "title", "text", "formula", "todo",
"table": {"head", "rows"} | null, "trace", "step", "view", "pane", "moment": index | null, "pin": node | null, "ghosts",
"order", "look", "others", "demo": explorer.lessons.demo.Demo | null, "vocab"}. Lessons and stops count from 0; a lesson
is offered where all recordings that it shows are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from explorer.codec import encode
from explorer.errors import TraceError
from explorer.lessons.data import Lesson, Stop, load_lessons
from explorer.lessons.demo import acceptance_demo
from explorer.lessons.figures import Recordings, Scene, fill
from explorer.lessons.steps import find_node, find_step
from explorer.microsteps import micro_steps
from explorer.trace import Step, Trace
from explorer.views.viewer import labels

# Parts of the screen that a stop may point at (``fact:NAME`` too); assets/viewer/lesson.js knows where they are.
LOOKS = (
    "tree",
    "pane",
    "card",
    "caption",
    "facts",
    "legend",
    "strip",
    "transport",
    "pruned",
    "order",
    "endings",
    "budgets",
)


def offered_lessons(names: Iterable[str], experiments: Iterable[str]) -> list[Lesson]:
    """The lessons whose recordings and records of the laboratory are all among these names."""
    known, measured = set(names), set(experiments)
    return [lesson for lesson in load_lessons() if lesson.traces <= known and lesson.experiments <= measured]


def stop_view(recordings: Recordings, lesson: int, stop: int) -> dict[str, Any]:
    """One stop, resolved against recordings. Raises TraceError where it does not exist or they do not fit it."""
    lessons = offered_lessons(recordings.equal, recordings.experiments)
    if not lessons:
        raise TraceError("There are no lessons here: their recordings are missing.")
    if not 0 <= lesson < len(lessons) or not 0 <= stop < len(lessons[lesson].stops):
        raise TraceError(f"There is no stop {stop + 1} in a lesson {lesson + 1}.")
    place = {
        "lesson": lesson,
        "stop": stop,
        "lessons": [{"title": each.title, "stops": [stop.title for stop in each.stops]} for each in lessons],
    }
    return place | _resolve(recordings, lessons[lesson].stops[stop])


def _resolve(recordings: Recordings, stop: Stop) -> dict[str, Any]:
    trace = recordings.read(stop.trace)
    step = find_step(trace, stop.step)
    scene = Scene(trace, step, recordings)
    demo = acceptance_demo(trace, step) if stop.has_demo else None
    table = stop.table and {
        "head": [fill(cell, scene) for cell in stop.table.head],
        "rows": [[fill(cell, scene) for cell in row] for row in stop.table.rows],
    }
    return {
        "title": stop.title,
        "text": fill(stop.text, scene),
        "formula": [fill(line, scene) for line in stop.formula],
        "todo": stop.todo,
        "table": table,
        "trace": stop.trace,
        "step": step.index,
        "view": stop.view,
        "pane": stop.pane,
        "moment": _moment(trace, step, stop.moment),
        "pin": find_node(step, stop.pin) if stop.pin else None,
        "ghosts": stop.ghosts,
        "order": stop.order,
        "look": stop.look,
        "others": stop.others,
        "demo": encode(demo),
        "vocab": labels(trace.vocab, demo.tokens if demo else []),
    }


def _moment(trace: Trace, step: Step, kind: str) -> int | None:
    """The first moment of a kind; raises TraceError where the step has none."""
    if not kind:
        return None
    kinds = [micro.kind for micro in micro_steps(trace, step)]
    if kind not in kinds:
        raise TraceError(f"step {step.index + 1} has no moment {kind!r}")
    return kinds.index(kind)
