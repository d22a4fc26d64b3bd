"""The record command re-makes what it is told to and keeps the rest; what is committed is what the plan asks for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer import runner
from explorer.cli import record as command
from explorer.config import repo_path
from explorer.errors import PromptError, SettingError
from explorer.runner_events import Event, Finished, RunRequest, Status
from explorer.trace import read_trace
from tests.support.traces import make_trace

PLAN = json.loads(repo_path("assets", "presets", "recordings.json").read_text(encoding="utf-8"))
FILES = [item["file"] for item in PLAN]
NEARLY_EQUAL = 5e-4  # between the two best logits; below it rounding may choose
COMMITTED = repo_path("assets", "traces")


class StubRunner:
    """Answers every request with a made-up trace of its method, and remembers it."""

    requests: list[RunRequest]

    def __init__(self) -> None:
        StubRunner.requests = []

    def run(self, request: RunRequest) -> Iterator[Event]:
        """One status, then the trace."""
        StubRunner.requests.append(request)
        yield Status("running")
        yield Finished(make_trace(request.method, steps=3, rows=6))


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Runner", StubRunner)


def record(*options: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(options)))


def manifest(folder: Path) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return entries


def test_everything_in_the_plan_is_made(tmp_path: Path) -> None:
    assert record("--out", str(tmp_path)) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "manifest.json"])
    assert [(entry["file"], entry["method"]) for entry in manifest(tmp_path)] == [
        (item["file"], item["method"]) for item in PLAN
    ]
    assert [request.method for request in StubRunner.requests] == [item["method"] for item in PLAN]
    assert all(request.prompt and request.baseline for request in StubRunner.requests)
    assert {request.sampling.rule for request in StubRunner.requests} == {"greedy", "rejection", "typical"}


def test_only_what_is_named_is_made_again(tmp_path: Path) -> None:
    record("--out", str(tmp_path))
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    record("--out", str(tmp_path), "--only", FILES[1])
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {FILES[1], "manifest.json"}
    assert [entry["file"] for entry in manifest(tmp_path)] == FILES


def test_an_unknown_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"magic\.json\.gz"):
        record("--out", str(tmp_path), "--only", "magic.json.gz")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_no_manifest_that_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: StubRunner, _request: RunRequest) -> Iterator[Event]:
        raise PromptError("too long")
        yield

    monkeypatch.setattr(StubRunner, "run", refuse)
    with pytest.raises(PromptError):
        record("--out", str(tmp_path))
    assert not (tmp_path / "manifest.json").exists()


def test_the_plan_covers_both_methods_on_every_kind_of_prompt() -> None:
    kinds = {(item["method"], item["prompt"]) for item in PLAN}
    assert {(method, prompt) for method in ("medusa", "eagle2") for prompt in ("Chat", "Code", "Maths")} <= kinds
    assert len(set(FILES)) == len(FILES) >= 6


def test_the_committed_manifest_is_the_plan() -> None:
    assert [entry["file"] for entry in manifest(COMMITTED)] == FILES
    assert all(entry[key] for entry in manifest(COMMITTED) for key in ("target", "date", "device"))
    assert {path.name for path in COMMITTED.glob("*.json*")} == {*FILES, "manifest.json"}


@pytest.mark.parametrize("name", FILES)
def test_each_committed_recording_is_a_real_run(name: str) -> None:
    trace = read_trace(COMMITTED / name)
    entry = next(entry for entry in manifest(COMMITTED) if entry["file"] == name)
    assert (trace.method, trace.target.name) == (entry["method"], entry["target"])
    assert (trace.drafter.name if trace.drafter else None) == entry["drafter"]
    assert trace.stats.mean_acceptance_length > 1
    assert trace.baseline is not None
    assert entry["output_equal"] == trace.baseline.output_equal
    if trace.sampling.acceptance != "greedy":
        assert trace.baseline.output_equal is None
        return
    parted = trace.baseline.first_divergence
    assert trace.baseline.output_equal or (parted and parted.gap is not None and parted.gap < NEARLY_EQUAL)
