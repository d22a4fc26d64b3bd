"""``record``: every planned recording is made, the manifest names exactly what is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer import runner
from explorer.__main__ import main
from explorer.config import METHOD_NAMES, repo_path
from explorer.runner_events import Event, Finished, RunRequest
from explorer.trace import read_trace
from tests.support.traces import make_trace

PLAN = json.loads(repo_path("assets", "presets", "recordings.json").read_text("utf-8"))


class FakeRunner:
    def run(self, request: RunRequest) -> Iterator[Event]:
        yield Finished(replace(make_trace(request.method, steps=4), method=request.method))


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Runner", FakeRunner)


def manifest(folder: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text("utf-8"))
    return read


def test_the_plan_covers_both_methods_on_chat_code_and_maths() -> None:
    wanted = {(method, prompt) for method in ("medusa", "eagle2") for prompt in ("Chat", "Code", "Maths")}
    assert wanted <= {(item["method"], item["prompt"]) for item in PLAN}
    assert {item["method"] for item in PLAN} <= set(METHOD_NAMES)


def test_all_recordings_are_made_and_named(tmp_path: Path) -> None:
    assert main(["record", "--out", str(tmp_path)]) == 0
    entries = manifest(tmp_path)
    assert [entry["file"] for entry in entries] == [item["file"] for item in PLAN]
    for entry in entries:
        assert read_trace(tmp_path / entry["file"]).method == entry["method"]
        assert {"title", "target", "drafter", "device", "date", "prompt"} <= entry.keys()


def test_one_can_be_made_again_and_the_others_stay(tmp_path: Path) -> None:
    main(["record", "--out", str(tmp_path)])
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert main(["record", "--out", str(tmp_path), "--only", PLAN[1]["file"]]) == 0
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {"manifest.json", PLAN[1]["file"]}
    assert len(manifest(tmp_path)) == len(PLAN)


def test_an_unknown_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--out", str(tmp_path), "--only", "nope.json.gz"]) == 2
    assert "nope.json.gz" in capsys.readouterr().err
