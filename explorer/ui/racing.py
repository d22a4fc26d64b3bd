"""Several methods on the visitor's prompt, one after another: the page's Race button.

Each run is a run like any other, kept under its own id; in the end the viewer shows all that ended as a race. A method
that cannot run is named with its reason, and the others go on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import gradio as gr

from explorer.errors import ExplorerError, TraceError
from explorer.insight import listing
from explorer.ui.context import Choices, Context, on_one_target
from explorer.ui.controls import COMMON, MethodForm, offered_methods
from explorer.ui.handlers import Live, play
from explorer.ui.picker import own_choice
from explorer.ui.screen import KEEP, Screen, idle
from explorer.ui.store import UNKNOWN_ID
from explorer.ui.viewer_component import MAX_TRACES, race_handle

METHOD, DRAFTER = COMMON.index("method"), COMMON.index("drafter")
NUM_RIVALS = 2  # ticked at first: each of them takes as long as a run of its own
NOBODY_ELSE = "A race needs another method: tick one under “Race with”."
TOO_MANY = f"A race has at most {MAX_TRACES} methods: untick some."


def default_rivals(forms: Sequence[MethodForm], offered: Sequence[str], chosen: str) -> list[str]:
    """Who races at first: the methods with a drafter of their own, the chosen one not among them."""
    drafting = [form.name for form in forms if form.needs_drafter and form.name in offered and form.name != chosen]
    return drafting[:NUM_RIVALS]


def offer_rivals(context: Context, target: Any, method: Any, ticked: Any) -> Any:
    """After another target or method was chosen: who can race, ticks kept where they still can."""
    try:
        preset = context.options.target(target)
    except ExplorerError:
        return KEEP
    choices = [(label, name) for label, name in offered_methods(context.forms, preset) if name != method]
    names = [name for _, name in choices]
    kept = [name for name in ticked if name in names] if isinstance(ticked, list) else []
    return gr.update(choices=choices, value=kept or default_rivals(context.forms, names, str(method)))


def run_race(context: Context, rivals: Any, *values: Any) -> Iterator[Screen]:
    """Run the form's method and ``rivals`` on its prompt; ends with a message in every case.

    All take their settings from the form; a rival takes its target's own drafter.
    """
    names = _names([values[METHOD], *rivals] if isinstance(rivals, list) else [])
    if not 2 <= len(names) <= MAX_TRACES:
        yield idle("error", TOO_MANY if len(names) > MAX_TRACES else NOBODY_ELSE)
        return
    ended, failures, rivals = list[Live](), list[str](), list[Choices]()
    for name in names:
        try:
            rivals.append(context.choices(_values_for(values, name)))
        except ExplorerError as error:
            failures.append(str(error))
    for number, choices in enumerate(on_one_target(rivals), start=1 + len(failures)):
        live = Live(choices)
        with closing(play(context, live)) as screens:
            for screen in screens:
                yield _in_race(screen, f"Race, {number} of {len(names)}: ")
        if live.error:
            failures.append(f"{live.choices.method.label} did not run: {live.error}")
        else:
            ended.append(live)
    yield _ended(context, ended, failures)


def _names(wanted: list[Any]) -> list[str]:
    return list(dict.fromkeys(name for name in wanted if isinstance(name, str)))


def _values_for(values: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if name == values[METHOD]:
        return values
    changed = list(values)
    changed[METHOD], changed[DRAFTER] = name, None
    return tuple(changed)


def _in_race(screen: Screen, prefix: str) -> Screen:
    """A run's update as part of a race: its end is not the end, so buttons stay as they are."""
    if not isinstance(screen.status, str):
        return screen._replace(plot=KEEP)
    said = json.loads(screen.status)
    is_over = said["kind"] in ("done", "error")
    told = json.dumps(said | {"kind": "busy" if is_over else said["kind"], "text": prefix + said["text"]})
    if not is_over:
        return screen._replace(status=told)
    return Screen(viewer=screen.viewer, status=told)


def _ended(context: Context, ended: Sequence[Live], failures: Sequence[str]) -> Screen:
    """All that ended, as a race on screen; what did not, in words."""
    told = list(dict.fromkeys(failures))  # a mistake in the form is every method's
    kept = [(live.run_id, steps) for live in ended if (steps := _num_steps(context, live)) is not None]
    if not kept:
        return idle("error", " ".join(told) or UNKNOWN_ID)
    text = f"Raced: {listing([live.choices.method.label for live in ended])}."
    first, steps = kept[0]
    viewer = race_handle([run_id for run_id, _ in kept], steps, steps + 2)
    picker = own_choice(context, first, context.store.get(first)[0], interactive=True)
    return idle("error" if told else "done", " ".join([text, *told]))._replace(viewer=viewer, picker=picker)


def _num_steps(context: Context, live: Live) -> int | None:
    try:
        return len(context.store.get(live.run_id)[0].steps)
    except TraceError:  # a busy server keeps few runs
        return None
