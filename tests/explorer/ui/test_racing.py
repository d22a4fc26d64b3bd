"""The Race button: several methods one after another, each kept, failures told, the others go on."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from explorer.errors import DeviceError
from explorer.runner_events import Event, RunRequest
from explorer.ui import racing
from explorer.ui.context import Context
from explorer.ui.options import pick_drafters
from explorer.ui.screen import KEEP, Screen
from tests.support.fake_runner import FakeRunner
from tests.support.medusa2_files import write_medusa2
from tests.support.page import form_values, make_context
from tests.support.traces import make_trace


@dataclass
class PickyRunner(FakeRunner):
    """A fake runner that cannot run one of the methods."""

    refuses: str = ""

    def run(self, request: RunRequest) -> Generator[Event, None, None]:
        self.error = (
            DeviceError("the device ran out of memory: use fewer rows") if request.method == self.refuses else None
        )
        self.trace = replace(self.trace, method=request.method)
        yield from super().run(request)


def said(screen: Screen) -> dict[str, Any]:
    return json.loads(screen.status)


def race(context: Context, rivals: Any, **changes: object) -> list[Screen]:
    return list(racing.run_race(context, rivals, *form_values(context, **changes)))


def large(recordings: Path, refuses: str = "") -> Context:
    context = make_context(recordings, PickyRunner(make_trace("eagle2", 4, 8), refuses=refuses))
    return replace(context, options=replace(context.options, max_new_tokens=64))


def test_each_method_runs_on_the_prompt_and_all_end_in_the_race_view(recordings: Path) -> None:
    context = large(recordings)
    screens = race(context, ["medusa", "lookahead"], target="large", drafter="someone/eagle", prompt="Go!")
    requests = context.runner.requests  # type: ignore[attr-defined]
    assert [(request.method, request.drafter, request.prompt) for request in requests] == [
        ("eagle2", "someone/eagle", "Go!"),
        ("medusa", "a/b", "Go!"),
        ("lookahead", None, "Go!"),
    ]
    medusa, lookahead = requests[1].settings, requests[2].settings
    assert {"tree", "total_tokens"} <= medusa.keys(), "each method takes its own controls of the form"
    assert "window" in lookahead
    assert "window" not in medusa
    last = screens[-1]
    handle = json.loads(last.viewer)
    assert (handle["view"], len(handle["others"])) == ("race", 2)
    runs = [context.store.get(run_id) for run_id in (handle["id"], *handle["others"])]
    assert [(trace.method, is_done) for trace, is_done in runs] == [
        ("eagle2", True),
        ("medusa", True),
        ("lookahead", True),
    ]
    assert said(last) == {"kind": "done", "text": "Raced: EAGLE-2, Medusa and Lookahead."}
    assert last.run_button["interactive"]
    assert last.race_button["interactive"]
    assert not last.stop_button["interactive"]


def test_between_the_runs_nothing_says_that_it_is_over(recordings: Path) -> None:
    screens = race(large(recordings), ["medusa"], target="large", drafter=None)
    texts = [said(screen)["text"] for screen in screens[:-1] if isinstance(screen.status, str)]
    assert texts[0] == "Race, 1 of 2: Loading the target …"
    assert any(text.startswith("Race, 2 of 2: Decoding with Medusa") for text in texts)
    for screen in screens[:-1]:
        assert screen.plot == KEEP
        for button in (screen.run_button, screen.race_button):
            assert button == KEEP or not button["interactive"]
        if isinstance(screen.status, str):
            assert said(screen)["kind"] in ("starting", "busy")
    handles = [json.loads(screen.viewer) for screen in screens if isinstance(screen.viewer, str)]
    assert len({(each["id"], each["v"]) for each in handles}) == len(handles), "every change has its own version"


def test_a_method_that_fails_is_named_and_the_others_go_on(recordings: Path) -> None:
    context = large(recordings, refuses="medusa")
    last = race(context, ["medusa", "lookahead"], target="large", drafter=None)[-1]
    assert said(last)["kind"] == "error"
    assert said(last)["text"] == (
        "Raced: EAGLE-2 and Lookahead. Medusa did not run: the device ran out of memory: use fewer rows"
    )
    assert len(json.loads(last.viewer)["others"]) == 1


def test_a_method_without_a_drafter_here_is_named_too(context: Context) -> None:
    last = race(context, ["medusa", "jacobi"])[-1]
    assert said(last)["text"].startswith("Raced: EAGLE-2 and Jacobi. Tiny target has no Medusa drafter here")


@pytest.mark.parametrize(
    ("rivals", "told"),
    [
        ([], racing.NOBODY_ELSE),
        (["eagle2"], racing.NOBODY_ELSE),
        (None, racing.NOBODY_ELSE),
        ("medusa", racing.NOBODY_ELSE),
        ([["medusa"], 7], racing.NOBODY_ELSE),
        ([f"method {i}" for i in range(9)], racing.TOO_MANY),
    ],
)
def test_a_race_against_nobody_or_everybody_is_refused(context: Context, rivals: Any, told: str) -> None:
    screens = race(context, rivals)
    assert [said(screen)["text"] for screen in screens] == [told]
    assert context.runner.requests == []  # type: ignore[attr-defined]


def test_a_mistake_in_the_form_is_told_once(context: Context) -> None:
    last = race(context, ["jacobi", "lookahead"], prompt=" ")[-1]
    assert said(last)["text"] == "The prompt is empty: write one, or pick an example."
    assert last.run_button["interactive"]
    assert context.runner.requests == []  # type: ignore[attr-defined]


def test_stop_frees_the_device_and_starts_no_further_method(recordings: Path) -> None:
    context = large(recordings)
    runner = context.runner
    assert isinstance(runner, FakeRunner)
    events = racing.run_race(context, ["medusa"], *form_values(context, target="large", drafter=None))
    next(screen for screen in events if isinstance(screen.viewer, str))
    events.close()  # type: ignore[attr-defined]
    assert (len(runner.requests), runner.num_closed) == (1, 1)
    assert not runner.device.locked()


def test_runs_that_a_busy_server_forgot_are_left_out(recordings: Path) -> None:
    context = large(recordings)  # keeps three runs
    last = race(context, ["medusa", "lookahead", "jacobi"], target="large", drafter=None)[-1]
    assert len(json.loads(last.viewer)["others"]) == 2


def test_who_can_race_follows_the_target_and_the_method(context: Context) -> None:
    update = racing.offer_rivals(context, "large", "eagle2", ["lookahead", "eagle1"])
    assert "eagle2" not in [name for _, name in update["choices"]]
    assert update["value"] == ["lookahead"], "the large target has no drafter for EAGLE-1"
    assert racing.offer_rivals(context, "large", "eagle2", [])["value"] == ["medusa"]
    assert racing.offer_rivals(context, "nonsense", "eagle2", []) == KEEP
    assert racing.offer_rivals(context, "tiny", "eagle2", None)["value"] == []


def test_all_race_on_the_target_that_one_of_them_adapts(recordings: Path, tmp_path: Path) -> None:
    """Runs of the original and of the adapted target would not compare."""
    context, source = large(recordings), str(write_medusa2(tmp_path))
    targets, more = pick_drafters([f"large:medusa={source}"], context.options.targets)
    context = replace(context, options=replace(context.options, targets=targets, more_drafters=more))
    race(context, ["eagle2"], target="large", method="medusa", drafter="medusa2")
    race(context, ["eagle2"], target="large", method="medusa", drafter="a/b")
    requests = context.runner.requests  # type: ignore[attr-defined]
    assert [(each.method, each.adapter) for each in requests] == [
        ("medusa", source),
        ("eagle2", source),
        ("medusa", None),
        ("eagle2", None),
    ]
