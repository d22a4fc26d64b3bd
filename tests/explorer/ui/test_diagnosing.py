"""Diagnosing on the page, on a fake runner: recorded runs, own prompts within limits, rows that open runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.errors import DeviceError
from explorer.ui import diagnosing, handlers
from explorer.ui.context import Context
from explorer.ui.diagnosing import DiagnoseScreen, RecordedDiagnosis, max_runs, open_row, run_diagnosis
from explorer.ui.screen import KEEP
from explorer.ui.status import status
from explorer.ui.store import TraceStore
from tests.support.fake_runner import FakeRunner
from tests.support.page import make_context
from tests.support.traces import make_trace
from tests.support.words import HOSTILE


@pytest.fixture
def context(recordings: Path) -> Context:
    return roomy(make_context(recordings))


def roomy(context: Context, **options: Any) -> Context:
    """Room for eight runs of a diagnosis."""
    allowed = replace(context.options, **({"max_kept_runs": 16} | options))
    return replace(context, options=allowed, store=TraceStore(context.store.library, allowed.max_kept_runs))


def said(screen: DiagnoseScreen) -> dict[str, Any]:
    return json.loads(screen.status)


def reports(screens: list[DiagnoseScreen]) -> list[dict[str, Any]]:
    return [json.loads(screen.report) for screen in screens if isinstance(screen.report, str)]


def play(context: Context, prompts: object = "One.\n\n Two. \nOne.", methods: object = None) -> list[DiagnoseScreen]:
    return list(run_diagnosis(context, prompts, ["eagle2", "jacobi"] if methods is None else methods, "tiny", 16))


def test_the_recorded_runs_are_there_at_once_and_read_once(context: Context) -> None:
    recorded = RecordedDiagnosis(context)
    first, whole = recorded.first(), recorded.rest(status("busy", diagnosing.READING))
    assert said(first) == {"kind": "busy", "text": diagnosing.READING}
    assert [view["about"] for view in reports([first, whole])] == [
        "The recorded runs: 1 run",
        "The recorded runs: 2 runs",
    ]
    rows = reports([whole])[0]["ranking"][0]["rows"]
    assert {row["id"] for row in rows} == {"eagle2-code", "medusa-chat"}
    assert recorded.first() is whole, "the next visitor does not wait"
    assert recorded.rest(whole.status) == DiagnoseScreen(), "and gets it once"
    assert whole.misses["visible"] and whole.reliability["visible"]
    assert context.runner.requests == []  # type: ignore[attr-defined]


def test_without_recordings_the_page_says_what_to_do(tmp_path: Path) -> None:
    only = RecordedDiagnosis(make_context(tmp_path)).first()
    assert said(only)["text"] == diagnosing.NOTHING and only.report == KEEP


def test_a_broken_recording_is_named_and_the_others_are_shown(tmp_path: Path, recordings: Path) -> None:
    for path in recordings.iterdir():
        (tmp_path / path.name).write_bytes(b"{" if path.name.startswith("medusa") else path.read_bytes())
    last = RecordedDiagnosis(make_context(tmp_path)).whole()
    assert "Chat · Medusa cannot be read" in said(last)["text"]
    assert [row["id"] for row in reports([last])[0]["ranking"][0]["rows"]] == ["eagle2-code"]


def test_every_prompt_runs_with_every_method_and_the_report_grows(context: Context) -> None:
    screens = play(context)
    asked = [(request.prompt, request.method) for request in context.runner.requests]  # type: ignore[attr-defined]
    assert asked == [(text, method) for text in ("One.", "Two.") for method in ("jacobi", "eagle2")]
    abouts = [view["about"] for view in reports(screens)]
    assert abouts == [f"Your prompts: {count} of 4 runs" for count in range(1, 5)]
    fractions = [said(screen)["fraction"] for screen in screens[:-1] if screen.status != KEEP]
    assert fractions == sorted(fractions) and fractions[-1] > 0.75
    assert said(screens[-1])["kind"] == "done" and "Diagnosed 4 runs." in said(screens[-1])["text"]
    assert screens[-1].run_button["interactive"] and not screens[-1].stop_button["interactive"]


def test_a_row_opens_its_run_at_its_worst_step(context: Context) -> None:
    row = reports(play(context))[-1]["ranking"][0]["rows"][0]
    assert row["id"] not in context.store.library
    trace, is_done = context.store.get(row["id"])
    drafted = [step for step in trace.steps if step.num_drafted and not step.is_cut]
    assert is_done and trace.steps[row["step"]].num_accepted == min(step.num_accepted for step in drafted)
    handles = [json.loads(open_row(context, row["id"], row["step"]).viewer) for _ in range(2)]
    assert [(one["id"], one["step"], one["steps"]) for one in handles] == [
        (row["id"], row["step"], len(trace.steps))
    ] * 2
    assert "recorded" not in handles[0], "an own run stays out of the address"
    assert handles[0]["visit"] != handles[1]["visit"], "the same row leads back to its step"
    assert json.loads(open_row(context, "medusa-chat", 1).viewer)["recorded"]


@pytest.mark.parametrize(("run", "step"), [("nobody's", 0), (None, 0), ("medusa-chat", -1), ({"a": 1}, "x"), (7, 1)])
def test_a_row_that_is_none_is_a_sentence(context: Context, run: object, step: object) -> None:
    screen = open_row(context, run, step)
    assert said(screen)["kind"] == "error" and screen.viewer == KEEP


@pytest.mark.parametrize(
    ("prompts", "methods", "says"),
    [
        ("", None, "There is no prompt"),
        (" \n \n", None, "There is no prompt"),
        (None, None, "must be text"),
        (["a"], None, "must be text"),
        ("x" * 501, None, "501 characters"),
        ("x\n" * 9000, None, "must be text, one prompt a line, within"),
        ("\n".join(map(str, range(5))), None, "5 prompts with 2 methods are 10 runs; this server diagnoses at most 8"),
        ("One.", [], "Tick one or several methods"),
        ("One.", "eagle2", "Tick one or several methods"),
        ("One.", ["medusa"], "Tick one or several methods"),
        ("One.", ["autoregressive"], "Tick one or several methods"),
        ("One.", [["eagle2"]], "Tick one or several methods"),
    ],
)
def test_a_mistake_is_one_sentence_and_reaches_no_runner(
    context: Context, prompts: object, methods: object, says: str
) -> None:
    (screen,) = play(context, prompts, methods)
    assert said(screen)["kind"] == "error" and says in said(screen)["text"]
    assert screen.run_button["interactive"]
    assert context.runner.requests == []  # type: ignore[attr-defined]


def test_what_cannot_run_is_named_and_ends_in_words(recordings: Path) -> None:
    broken = FakeRunner(make_trace("eagle2", 6, 12), error=DeviceError("no memory is left"))
    screens = play(roomy(make_context(recordings, broken)), "One.", ["eagle2"])
    assert said(screens[-1]) == {"kind": "error", "text": "“One.” with EAGLE-2: no memory is left"}
    assert reports(screens) == [], "what was shown before stays"


def test_a_stop_in_the_middle_frees_the_device_and_keeps_what_ended(context: Context) -> None:
    events = run_diagnosis(context, "One.\nTwo.\nThree.", ["eagle2"], "tiny", 16)
    seen = []
    for screen in events:
        seen.append(screen)
        if len(reports(seen)) == 1 and screen.report == KEEP:
            break
    events.close()  # type: ignore[attr-defined]
    runner = context.runner
    assert not runner.device.locked() and runner.num_closed == 2  # type: ignore[attr-defined]
    assert len(runner.requests) == 2, "the third is never asked for"  # type: ignore[attr-defined]
    assert said(diagnosing.after_stop(context, None, handlers.STOPPED))["text"] == diagnosing.STOPPED
    assert said(diagnosing.after_stop(context, None, ""))["text"] == handlers.QUEUE_FULL


def test_runs_never_exceed_what_the_server_keeps(context: Context) -> None:
    assert max_runs(context) == 8
    assert max_runs(roomy(context, max_kept_runs=1)) == 1
    assert max_runs(roomy(context, max_kept_runs=1000)) == diagnosing.MAX_RUNS


def test_other_targets_offer_other_methods(context: Context) -> None:
    update = diagnosing.offer_methods(context, "large", ["eagle2", "medusa", "nonsense"])
    assert update["value"] == ["eagle2", "medusa"]
    assert "autoregressive" not in [name for _, name in update["choices"]]
    assert diagnosing.offer_methods(context, "nonsense", []) == KEEP


def test_hostile_prompts_stay_data(recordings: Path) -> None:
    hostile = make_trace("eagle2", 6, 12, hostile=True)
    screens = play(roomy(make_context(recordings, FakeRunner(hostile))), HOSTILE[0], ["eagle2"])
    text = json.dumps(reports(screens)[-1], ensure_ascii=False)
    assert "\u202e" not in text and "\u200b" not in text
    assert reports(screens)[-1]["ranking"][0]["rows"][0]["cells"][3] == HOSTILE[0]
