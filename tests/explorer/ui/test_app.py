"""The app as built: private events, offline launch settings, a runner that loads when it is needed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from explorer.runner_events import DeviceState, Status
from explorer.ui import app
from explorer.ui.app import LazyRunner, build_app, launch_settings, make_store, num_queued, page_theme
from explorer.ui.options import AppOptions
from tests.support.fake_runner import FakeRunner
from tests.support.page import LARGE, TINY
from tests.support.traces import make_trace


def test_the_page_builds_with_and_without_recordings(recordings: Path, tmp_path: Path) -> None:
    for folder in (recordings, tmp_path):
        demo, _ = build_app(FakeRunner(make_trace()), AppOptions((TINY, LARGE), traces_dir=folder))
        public = {fn.api_name for fn in demo.fns.values() if fn.api_visibility != "private"}
        assert public == {"trace", "methods", "recorded", "recorded_trace", "export"}, "the page's plumbing is no API"
        assert not [block for block in demo.blocks.values() if type(block).__name__ == "State"]


def test_the_first_recording_is_the_viewers_first_value(recordings: Path) -> None:
    demo, _ = build_app(FakeRunner(make_trace()), AppOptions((TINY,), traces_dir=recordings))
    viewer = next(block for block in demo.blocks.values() if getattr(block, "elem_id", None) == "viewer")
    assert '"eagle2-code"' in viewer.value


def test_launch_settings_keep_it_private_and_offline() -> None:
    settings = launch_settings(AppOptions((TINY,), host="0.0.0.0", port=8000))
    assert settings["run_history"] is False
    assert settings["show_error"] is False
    assert settings["enable_monitoring"] is False
    assert settings["quiet"], "Gradio's advice on launch() is for programmers"
    assert not launch_settings(AppOptions((TINY,), is_shared=True))["quiet"], "only Gradio tells the public link"
    assert settings["strict_cors"] is True
    assert settings["allowed_paths"] == []
    assert settings["max_file_size"]
    assert (settings["server_name"], settings["server_port"], settings["share"]) == ("0.0.0.0", 8000, False)
    assert Path(settings["css_paths"]).is_file()


def test_the_theme_has_only_system_fonts() -> None:
    theme = page_theme()
    assert theme._stylesheets == []
    css = theme._get_theme_css()
    assert "@import" not in css
    assert "https:" not in css


def test_the_runner_is_made_at_its_first_run_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make() -> FakeRunner:
        made.append(FakeRunner(make_trace(steps=1)))
        return made[-1]

    monkeypatch.setattr(app, "make_runner", make)
    runner = LazyRunner()
    assert made == []
    request = app.RunRequest("eagle2", prompt="x")
    assert next(runner.run(request)) == Status("loading the engine")
    assert made == [], "the first event comes before the slow import"
    assert len(list(runner.run(request))) > 3
    list(runner.run(request))
    assert len(made) == 1


@pytest.mark.parametrize("needs", [True, False])
def test_warming_up_brings_the_default_target_only_where_it_is_offered(
    monkeypatch: pytest.MonkeyPatch, needs: bool
) -> None:
    warmed, fetched = threading.Event(), []

    class Warm(FakeRunner):
        def fetch_default_target(self) -> None:
            fetched.append(True)

    def make() -> Warm:
        warmed.set()
        return Warm(make_trace(steps=1))

    monkeypatch.setattr(app, "make_runner", make)
    LazyRunner().warm_up(needs_default_target=needs)
    assert warmed.wait(10)
    for thread in threading.enumerate():
        if thread.name == "runner-import":
            thread.join(10)
    assert fetched == [True] * needs


def test_asking_for_the_state_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "make_runner", lambda: FakeRunner(make_trace(steps=1)))
    runner = LazyRunner()
    assert runner.state() == DeviceState(is_loaded=False)
    list(runner.run(app.RunRequest("eagle2", prompt="x")))
    assert runner.state() == DeviceState(is_loaded=True)


def test_an_empty_store_that_is_given_is_the_one_that_is_used(tmp_path: Path) -> None:
    options = AppOptions((TINY,), traces_dir=tmp_path, max_kept_mb=1)
    store = make_store(options)
    demo, _ = build_app(FakeRunner(make_trace()), options, store)
    runs = [fn.fn for fn in demo.fns.values() if fn.name == "run_trace"]
    assert len(runs) == 1
    assert store in [cell.cell_contents.store for cell in runs[0].__closure__ if hasattr(cell.cell_contents, "store")]
    assert num_queued(demo) == 0
