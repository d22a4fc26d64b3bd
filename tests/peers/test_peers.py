"""Other packages beside ours, with a worker of stand-ins: what is asked, kept, asked again, and told."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from explorer.bench import Progress
from explorer.bench_report import build_report
from explorer.measurement import Measurement, ResultsFile
from explorer.questions import Question
from tests.peers import measure, worker
from tests.peers.measure import OURS, TRANSFORMERS, Worker, make_environment
from tests.structure.source import ROOT

# Lanes that write 7 and count what they are asked; the other one ends at the stop token, 2.
STAND_IN = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.peers.worker import _counted, serve
def runs_on(ids, num_tokens):
    print(*ids, num_tokens, file=sys.stderr, flush=True)
    return _counted([7] * num_tokens, 2, 9, 1)
lanes = {{"runs_on": runs_on, "ends": lambda ids, num_tokens: _counted([7, 2][:num_tokens])}}
print(json.dumps({{"ready": list(lanes)}}), flush=True)
serve(lanes, json.load(open(sys.argv[1]))["max_new_tokens"], sys.stdin, sys.stdout)
"""
JOB: dict[str, Any] = {"lanes": {"runs_on": {"gamma": 3}, "ends": {}}, "stops": [2], "max_new_tokens": 5}
QUESTIONS = [Question(str(number), "all", "?") for number in range(3)]


def start(folder: Path, script: str = STAND_IN) -> Worker:
    return Worker([sys.executable, "-c", script], folder, JOB)


def test_each_lane_is_warmed_up_and_times_the_prompt_alone() -> None:
    asked: list[int] = []

    def decode(ids: list[int], num_tokens: int) -> dict[str, Any]:
        asked.append(num_tokens)
        return {"output": ids[:num_tokens]}

    answers = io.StringIO()
    worker.serve({"a": decode, "b": decode}, 3, ['{"ids": [5, 6, 7, 8], "lanes": ["b"]}\n'], answers)
    (answer,) = map(json.loads, answers.getvalue().splitlines())
    assert asked == [worker.NUM_WARM_UP, 1, 3]
    assert (answer["lane"], answer["output"]) == ("b", [5, 6, 7])
    assert answer["prefill_ms"] >= 0 and answer["total_ms"] >= 0


def test_answers_become_measurements_and_are_not_asked_for_again(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", {})
    with start(tmp_path) as peers:
        peers.add_missing(QUESTIONS[0], [5, 6], 1, results)
    assert [found.method for found in results.measurements] == ["ends", "runs_on"]  # the second goes first
    ended, ran_on = results.measurements
    assert (ended.stop, ended.output, ended.num_steps) == ("eos", [7, 2], 1)
    assert (ran_on.stop, ran_on.output, ran_on.num_prompt_tokens) == ("max_new_tokens", [7] * 5, 2)
    assert (ran_on.settings, ran_on.num_steps, ran_on.num_accepted_draft_tokens) == ({"gamma": 3}, 2, 1)

    lines = (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "r.jsonl").write_text("".join(lines[:-1]) + lines[-1][:20], encoding="utf-8")  # killed while writing
    again = ResultsFile(tmp_path / "r.jsonl", {})
    with start(tmp_path) as peers:
        peers.add_missing(QUESTIONS[0], [5, 6], 1, again)
        peers.add_missing(QUESTIONS[0], [5, 6], 1, again)
    assert [found.method for found in again.measurements] == ["ends", "runs_on"]
    assert (tmp_path / "worker.log").read_text(encoding="utf-8").split("\n")[:-1] == ["5 6 4", "5 6 1", "5 6 5"]


def test_an_output_that_is_not_ours_is_told(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", {})
    results.add(Measurement("0", "all", "autoregressive", [7, 7, 7, 2], "eos", 2, 1.0, 3.0, gaps=[1.0] * 4))
    with start(tmp_path) as peers:
        peers.add_missing(QUESTIONS[0], [5, 6], 0, results)
    row = build_report({}, results.measurements)["methods"]["runs_on"]
    assert row["num_equal"] == 0
    assert row["divergences"] == [{"question_id": "0", "index": 3, "gap": 1.0, "is_near_tie": False}]


def test_theirs_come_after_our_lanes_of_every_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = []
    num_lanes = len(OURS) + len(TRANSFORMERS)

    def run_bench(requests: dict[str, Any], questions: list[Question], *_: object) -> Any:
        assert {request.dtype for request in requests.values()} == {"float32"}
        for done in range(1, num_lanes * len(questions) + 1):
            events.append(done)
            yield Progress(done, num_lanes * len(questions), None)

    monkeypatch.setattr("explorer.bench.run_bench", run_bench)
    monkeypatch.setattr(Worker, "add_missing", lambda _self, *asked: events.append(asked[:3]))
    results = ResultsFile(tmp_path / "r.jsonl", {})
    with start(tmp_path) as peers:
        measure.measure(peers, QUESTIONS[:2], [[1], [2]], results)
    first, second = range(1, num_lanes + 1), range(num_lanes + 1, 2 * num_lanes + 1)
    assert events == [*first, (QUESTIONS[0], [1], 0), *second, (QUESTIONS[1], [2], 1)]


def test_a_worker_that_ends_is_named_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"worker\.log"):
        start(tmp_path, "raise RuntimeError('no such package')")
    assert "no such package" in (tmp_path / "worker.log").read_text(encoding="utf-8")


def test_an_environment_of_the_same_packages_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    folder = tmp_path / "venv"
    folder.mkdir()
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    python = make_environment(folder, ["a==1"])
    assert commands == [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [python, "-m", "pip", "install", "--quiet", "--no-compile", "a==1"],
    ]
    assert make_environment(folder, ["a==1"]) == python and len(commands) == 2
    make_environment(folder, ["a==2"])
    assert len(commands) == 4


def test_the_worker_imports_nothing_of_this_project() -> None:
    text = Path(worker.__file__).read_text(encoding="utf-8")
    assert not [name for name in ("explorer", "kernels", "tests") if f"from {name}" in text or f"import {name}" in text]
