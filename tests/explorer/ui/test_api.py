"""The endpoints for scripts, called by gradio_client over a real server on this machine; the README's example too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from explorer.config import repo_path
from explorer.errors import SettingError, TraceError
from explorer.trace import from_json, to_json
from explorer.ui.api import read_run, read_settings
from explorer.ui.context import Context
from tests.browser.app_server import AppServer
from tests.support.fake_runner import FakeRunner
from tests.support.page import TINY, make_recordings
from tests.support.traces import make_trace

RUN = make_trace("eagle2", 4, 12)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The page over a fake runner."""
    folder = make_recordings(tmp_path_factory.mktemp("traces"))
    with AppServer(FakeRunner(RUN), (TINY,), folder) as running:
        yield running


@pytest.fixture(scope="module")
def call(server: AppServer) -> Any:
    """``call(name, ...)``: what an endpoint answers."""
    client = Client(server.url, verbose=False, analytics_enabled=False)
    return lambda name, *args, **kwargs: client.predict(*args, api_name=f"/{name}", **kwargs)


def test_a_prompt_gives_a_trace(server: AppServer, call: Any) -> None:
    settings = {"total_tokens": 8, "depth": "2"}
    raw = call("trace", "Say hello", settings=settings, max_new_tokens=7, temperature=0.5, seed=3)
    assert from_json(json.dumps(raw)).output == RUN.output
    request = server.runner.requests[-1]
    assert (request.prompt, request.method, request.max_new_tokens) == ("Say hello", "eagle2", 7)
    assert request.settings == {"total_tokens": "8", "depth": "2"}
    assert (request.sampling.temperature, request.sampling.seed) == (0.5, 3)
    assert (request.target, request.drafter) == (TINY.source, "/nowhere/eagle")
    assert not server.runner.device.locked()
    assert not request.is_adaptive
    call("trace", "Say hello", adaptive=True)
    assert server.runner.requests[-1].is_adaptive


def test_settings_may_be_json_text(server: AppServer, call: Any) -> None:
    call("trace", "Say hello", "jacobi", '{"block": 4}')
    assert server.runner.requests[-1].settings == {"block": "4"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"prompt": ""}, "The prompt is empty"),
        ({"prompt": 7}, "must be text"),
        ({"prompt": "x" * 20_001}, "at most 20,000"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"method": "medusa"}, "has no Medusa drafter here"),
        ({"target": "/etc"}, "does not offer the target '/etc'"),
        ({"drafter": "/etc"}, "does not offer the drafter '/etc'"),
        ({"max_new_tokens": 10**9}, "from 1 to 64"),
        ({"max_new_tokens": "many"}, "from 1 to 64"),
        ({"temperature": "hot"}, "temperature must be"),
        ({"settings": "{"}, "JSON text"),
        ({"settings": [1]}, "values by name"),
        ({"settings": {"depth": {"a": 1}}}, "values by name"),
    ],
)
def test_a_mistake_is_our_sentence_and_nothing_runs(
    server: AppServer, call: Any, arguments: dict[str, Any], told: str
) -> None:
    before = len(server.runner.requests)
    with pytest.raises(AppError, match=re.escape(told)):
        call("trace", **({"prompt": "Say hello"} | arguments))
    assert len(server.runner.requests) == before


def test_a_runners_bug_stays_in_the_log(server: AppServer, call: Any) -> None:
    server.runner.error = KeyError("/secret/path")
    try:
        with pytest.raises(AppError, match="its log says why"):
            call("trace", "Say hello")
    finally:
        server.runner.error = None


def test_methods_and_recorded_runs_are_listed(call: Any) -> None:
    methods = {entry["name"]: entry for entry in call("methods")}
    assert methods["eagle2"]["targets"] == ["tiny"]
    assert methods["medusa"]["targets"] == []
    assert [setting["name"] for setting in methods["eagle2"]["settings"]] == ["total_tokens", "depth", "top_k"]
    assert [entry["name"] for entry in call("recorded")] == ["eagle2-code", "medusa-chat"]
    assert "path" not in call("recorded")[0]


def test_a_recorded_run_and_its_files(call: Any) -> None:
    raw = call("recorded_trace", "medusa-chat")
    assert raw["method"] == "medusa"
    by_name = call("export", "medusa-chat", "svg", step=2)
    assert by_name["name"] == "medusa-chat-step2.svg"
    by_value = call("export", raw, "svg", step=2)
    assert by_value["text"] == by_name["text"]
    assert by_value["name"].startswith("medusa-")
    assert call("export", json.dumps(raw), "stats")["type"] == "application/json"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nobody", "svg"), "There is no recorded trace 'nobody'"),
        (("medusa-chat", "png"), "kind is one of trace, html"),
        (("medusa-chat", "svg", 99), "there is no step 99"),
        (("medusa-chat", "svg", "1"), "step is a whole number"),
        (("medusa-chat", "svg", 1, "red"), "scheme is light or dark"),
        (({"schema": "x" * 5000}, "svg"), "not a trace"),
        ((7, "svg"), "top level must be an object"),
    ],
)
def test_what_cannot_be_exported_is_told(call: Any, arguments: tuple[Any, ...], told: str) -> None:
    with pytest.raises(AppError, match=told) as caught:
        call("export", *arguments)
    assert len(str(caught.value)) < 400


def test_the_readmes_example_runs(server: AppServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", repo_path("README.md").read_text(encoding="utf-8"), re.DOTALL)
    example = next(block for block in blocks if "gradio_client" in block)
    assert "http://127.0.0.1:7860" in example
    monkeypatch.chdir(tmp_path)
    exec(example.replace("http://127.0.0.1:7860", server.url), {})
    assert (tmp_path / "eagle2-count-to-ten.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_settings_are_a_dict_or_its_text() -> None:
    assert read_settings(None) == read_settings("") == read_settings("{}") == {}
    assert read_settings({"depth": 3}) == read_settings('{"depth": 3}') == {"depth": 3}
    for wrong in ("[" * 3000, "x", 7, 0, [1], "[1]", '{"a": ' + "1" * 5000 + "}"):
        with pytest.raises(SettingError):
            read_settings(wrong)


def test_a_trace_from_a_script_is_checked_like_a_file(context: Context) -> None:
    assert read_run(context, to_json(RUN)) == RUN
    for wrong in ({}, {"schema": float("nan")}, {"a": object()}, '{"a": ' + "1" * (9 * 2**20), None, "../eagle2-code"):
        with pytest.raises(TraceError):
            read_run(context, wrong)
