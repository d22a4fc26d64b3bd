"""The page's handlers as plain functions, on a fake runner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from explorer.config import Sampling
from explorer.errors import DeviceError
from explorer.service.served_runner import RunLimits, ServedRunner
from explorer.ui import handlers
from explorer.ui.context import Context
from explorer.ui.screen import KEEP, Screen
from tests.support.fake_runner import FakeRunner
from tests.support.page import form_values, make_context
from tests.support.traces import make_trace


def said(screen: Screen) -> dict[str, Any]:
    return json.loads(screen.status)


def shown(screen: Screen) -> dict[str, Any]:
    return json.loads(screen.viewer)


def play(context: Context, **changes: object) -> list[Screen]:
    return list(handlers.run_trace(context, *form_values(context, **changes)))


def is_enabled(button: Any) -> bool:
    return bool(button["interactive"])


def test_a_run_streams_one_update_a_step_and_ends_with_the_whole_trace(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "SHOW_SECONDS", 0.0)
    screens = play(context)
    handles = [shown(screen) for screen in screens if isinstance(screen.viewer, str)]
    assert [value["steps"] for value in handles] == [0, 1, 2, 3, 4, 5, 6, 6]
    assert len({value["v"] for value in handles}) == len(handles), "every change has its own version"
    trace, is_done = context.store.get(handles[-1]["id"])
    assert is_done
    assert len(trace.steps) == 6
    assert trace.prompt.text == "Say hello."
    last, figure = screens[-2:]
    assert said(last)["kind"] == "done"
    assert figure == Screen(plot=figure.plot), "the viewer does not wait for plotly"
    assert "depth must be at most 8" in said(last)["text"], "what was clamped is said"
    assert is_enabled(last.run_button)
    assert not is_enabled(last.stop_button)
    assert is_enabled(last.picker)
    started = next(screen for screen in screens if isinstance(screen.viewer, str))
    assert started.picker["value"] == shown(started)["id"], "what is on screen is no recording any more"
    assert started.picker["choices"][-1][0] == "Your run: EAGLE-2 · Say hello."
    assert not is_enabled(started.picker), "a recording would be drawn over by the next step"
    assert len([screen for screen in screens if screen.plot != KEEP]) == 1, "one figure per run"


def test_steps_that_follow_too_fast_are_shown_together(context: Context) -> None:
    handles = [shown(screen) for screen in play(context) if isinstance(screen.viewer, str)]
    assert [value["steps"] for value in handles] == [0, 6], "drawing must not take time from decoding"


def test_the_phases_are_told_in_words(context: Context) -> None:
    texts = [said(screen)["text"] for screen in play(context) if isinstance(screen.status, str)]
    assert texts[0] == "Loading the target …"
    assert "First plain decoding, to compare with: 5 of at most 32 tokens." in texts
    assert any(text.startswith("Decoding with EAGLE-2") for text in texts)


def test_before_its_first_step_a_run_shows_its_prompt_and_what_plain_decoding_wrote(context: Context) -> None:
    screens = [said(screen) for screen in play(context, prompt="Say\n\u202ehello.") if isinstance(screen.status, str)]
    runs = [told["run"] for told in screens if told["kind"] == "starting"]
    assert runs[0] == {"prompt": "Say\n⟨U+202E⟩hello.", "output": ""}
    assert runs[-1]["output"] == "What plain decoding wrote <b>first</b>"
    assert not any("run" in told for told in screens if told["kind"] != "starting"), "then the viewer shows it"


def test_a_sampled_request(context: Context) -> None:
    play(context, **{"sampling.temperature": 0.7, "sampling.seed": 3})
    assert context.runner.requests[0].sampling == Sampling(0.7, seed=3)  # type: ignore[attr-defined]


def test_the_request_says_what_the_form_said(context: Context) -> None:
    play(context, system=" Be brief. ", **{"eagle2.depth": 3.0, "eagle2.top_k": None, "medusa.total_tokens": 9})
    request = context.runner.requests[0]  # type: ignore[attr-defined]
    assert (request.target, request.drafter) == ("/nowhere/tiny", "/nowhere/eagle")
    assert (request.method, request.prompt, request.system) == ("eagle2", "Say hello.", "Be brief.")
    assert request.max_new_tokens == 32
    assert request.sampling == Sampling()
    assert request.settings["depth"] == "3"
    assert "top_k" not in request.settings, "an emptied control leaves the default"
    assert request.settings.keys() <= {"total_tokens", "depth", "top_k"}, "other methods' controls stay out"


def test_adaptive_is_for_methods_that_can_rest_and_no_mistake_elsewhere(context: Context) -> None:
    for method in ("eagle2", "lookahead"):
        play(context, adaptive=True, method=method)
    play(context)
    assert [request.is_adaptive for request in context.runner.requests] == [True, False, False]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"adaptive": "perhaps"}, "adaptive must be true or false"),
        ({"adaptive": ["yes"]}, "adaptive must be true or false"),
        ({"prompt": "  \n"}, "empty"),
        ({"prompt": None}, "empty"),
        ({"prompt": 7}, "text"),
        ({"prompt": "x" * 501}, "501"),
        ({"system": "x" * 501}, "system prompt"),
        ({"max_new_tokens": 0}, "from 1 to 64"),
        ({"max_new_tokens": 10**9}, "from 1 to 64"),
        ({"max_new_tokens": float("nan")}, "from 1 to 64"),
        ({"max_new_tokens": "many"}, "from 1 to 64"),
        ({"max_new_tokens": True}, "from 1 to 64"),
        ({"method": "magic"}, "unknown method"),
        ({"method": ["eagle2"]}, "unknown method"),
        ({"method": "medusa"}, "no Medusa drafter"),
        ({"target": "/etc/passwd"}, "does not offer"),
        ({"target": {"a": 1}}, "does not offer"),
        ({"drafter": "/etc"}, "does not offer the drafter"),
    ],
)
def test_a_visitors_mistake_is_one_sentence_and_reaches_no_runner(
    context: Context, changes: dict[str, Any], word: str
) -> None:
    screens = play(context, **changes)
    assert len(screens) == 1
    assert said(screens[0])["kind"] == "error"
    assert word in said(screens[0])["text"]
    assert is_enabled(screens[0].run_button)
    assert context.runner.requests == []  # type: ignore[attr-defined]


def test_an_error_of_the_run_is_shown_and_the_next_run_works(recordings: Path) -> None:
    runner = FakeRunner(make_trace("eagle2", 3, 8), error=DeviceError("the device ran out of memory: use fewer rows"))
    context = make_context(recordings, runner)
    last = play(context)[-1]
    assert said(last) == {"kind": "error", "text": "the device ran out of memory: use fewer rows"}
    assert is_enabled(last.run_button)
    runner.error = None
    assert said(play(context)[-2])["kind"] == "done"


def test_a_bug_of_ours_is_logged_and_never_shown(recordings: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = FakeRunner(make_trace("eagle2", 3, 8), error=RuntimeError("secret path /root/x"))
    last = play(make_context(recordings, runner))[-1]
    assert said(last)["kind"] == "error"
    assert "secret" not in said(last)["text"]
    assert "secret path" in caplog.text
    assert runner.num_closed == 1


def test_stop_closes_the_runner_and_keeps_what_was_decoded(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "SHOW_SECONDS", 0.0)
    runner = context.runner
    assert isinstance(runner, FakeRunner)
    events = handlers.run_trace(context, *form_values(context))
    handle = next(screen.viewer for screen in events if isinstance(screen.viewer, str) and shown(screen)["steps"] == 2)
    events.close()  # type: ignore[attr-defined]
    assert runner.num_closed == 1
    assert not runner.device.locked(), "the next visitor's run can begin"
    screen = handlers.after_stop(context, handle, handlers.STOPPED)
    assert said(screen)["text"] == "Stopped after 2 steps."
    trace, is_done = context.store.get(shown(screen)["id"])
    assert is_done
    assert (trace.stop, len(trace.steps), trace.output.text) == ("cancelled", 2, "step 1")
    assert trace.output.token_ids == [trace.first_token, *trace.steps[0].emitted, *trace.steps[1].emitted]
    assert shown(screen)["v"] == 3, "the viewer notices the end"


@pytest.mark.parametrize("value", [None, "", "{", "[]", '{"id": 3}', '{"id": "eagle2-code", "steps": 12, "v": 0}', 5])
def test_stop_before_the_first_step_leaves_the_recording_alone(context: Context, value: Any) -> None:
    screen = handlers.after_stop(context, value, handlers.STOPPED)
    assert said(screen)["text"] == "Stopped before the first step. On screen is what was there before."
    assert screen.viewer == KEEP


def test_stop_before_the_first_step_does_not_count_an_older_runs_steps(context: Context) -> None:
    older = play(context)[-2].viewer
    assert (
        said(handlers.after_stop(context, older, handlers.STOPPED))["text"]
        == "Stopped before the first step. On screen is what was there before."
    )


@pytest.mark.parametrize("how", ["", None, 3, "else"])
def test_a_run_that_the_queue_refused_says_so(context: Context, how: Any) -> None:
    screen = handlers.after_stop(context, None, how)
    assert said(screen) == {"kind": "error", "text": handlers.QUEUE_FULL}
    assert is_enabled(screen.run_button) and not is_enabled(screen.stop_button)


def test_two_visitors_never_share_an_id(context: Context) -> None:
    ids = [shown(play(context)[-2])["id"] for _ in range(2)]
    assert ids[0] != ids[1]
    assert all(len(run_id) >= 20 for run_id in ids)


def test_another_target_brings_its_methods_presets_and_values(context: Context) -> None:
    method, preset, drafter, *rest = handlers.apply_target(context, "large", "eagle2")
    controls = rest[num_groups(context) :]
    offered = [name for _, name in method["choices"]]
    assert {"autoregressive", "medusa", "eagle2", "lookahead"} <= set(offered)
    assert "eagle1" not in offered, "the large target has no drafter for it"
    assert drafter["value"] == "someone/eagle"
    assert method["value"] == "eagle2"
    assert [name for _, name in preset["choices"]] == ["paper"]
    values = dict(zip([item.name for item in context.fields], [update["value"] for update in controls], strict=True))
    assert (values["eagle2.total_tokens"], values["eagle2.depth"], values["eagle2.top_k"]) == (60, 5, 10)
    method, _, drafter, *rest = handlers.apply_target(context, "tiny", "medusa")
    assert [update["visible"] for update in rest[: num_groups(context)]].count(True) == 1
    assert method["value"] == "eagle2", "the tiny target has no Medusa heads"
    assert drafter["choices"] == [("/nowhere/eagle",) * 2], "the drafters of the method that takes its place"


def num_groups(context: Context) -> int:
    return sum(bool(form.settings) for form in context.forms)


def test_the_drafters_follow_target_and_method(context: Context) -> None:
    update = handlers.apply_method(context, "large", "eagle2")[0]
    assert (update["choices"], update["value"], update["visible"]) == ([("someone/eagle",) * 2], "someone/eagle", True)
    update = handlers.apply_method(context, "tiny", "autoregressive")[0]
    assert (update["choices"], update["value"], update["visible"]) == ([], None, False)


@pytest.mark.parametrize(
    ("target", "method"),
    [("nonsense", "eagle2"), ("tiny", "medusa"), ("tiny", ["eagle2"]), (None, None), ({}, 7)],
    ids=["unknown target", "a method of the target before", "list", "nothing", "other types"],
)
def test_a_method_that_is_not_offered_changes_nothing(context: Context, target: object, method: object) -> None:
    assert handlers.apply_method(context, target, method) == [KEEP] * (1 + num_groups(context))


def test_a_preset_sets_the_generated_controls(context: Context) -> None:
    names = [item.name for item in context.fields]
    small = dict(zip(names, handlers.apply_preset(context, "tiny", "small"), strict=True))
    assert small["eagle2.total_tokens"]["value"] == 8
    assert handlers.apply_preset(context, "tiny", "nonsense") == [KEEP] * len(names)
    assert handlers.apply_target(context, "nonsense", "eagle2") == [KEEP] * (3 + num_groups(context) + len(names))


def test_only_the_chosen_methods_controls_are_visible(context: Context) -> None:
    with_settings = [form.name for form in context.forms if form.settings]
    updates = handlers.apply_method(context, "large", "medusa")[1:]
    assert [name for name, update in zip(with_settings, updates, strict=True) if update["visible"]] == ["medusa"]


def test_a_tab_beyond_its_places_is_told_so_and_reaches_no_runner(context: Context) -> None:
    request = gr.Request(session_hash="tab")
    assert (
        said(list(handlers.run_for_visitor(context, request, handlers.run_trace, *form_values(context)))[-2])["kind"]
        == "done"
    )
    places = [context.visitors.admit("tab") for _ in range(context.options.max_per_visitor)]
    for place in places:
        place.__enter__()
    (screen,) = handlers.run_for_visitor(context, request, handlers.run_trace, *form_values(context))
    assert "runs waiting or running here already" in said(screen)["text"]
    assert is_enabled(screen.run_button)
    assert len(context.runner.requests) == 1  # type: ignore[attr-defined]


def test_a_run_beyond_a_limit_keeps_its_steps_as_cancelled(recordings: Path) -> None:
    served = ServedRunner(FakeRunner(make_trace("eagle2", 6, 12), step_ms=20), RunLimits(64, None, 0.05))
    context = make_context(recordings, served)
    last = play(context)[-1]
    assert said(last)["kind"] == "error"
    assert "this server gives a run" in said(last)["text"]
    trace, is_done = context.store.get(shown(last)["id"])
    assert is_done
    assert trace.stop == "cancelled"
    assert 0 < len(trace.steps) < 6
