"""The benchmark's loop: lanes take turns, what is measured is not measured again, notices are told once."""

from __future__ import annotations

from pathlib import Path

from explorer.bench import run_bench
from explorer.measurement import ResultsFile
from explorer.questions import Question
from explorer.runner_events import RunRequest
from tests.support.goldens import FOLDER

QUESTIONS = [Question(str(i), "all", text) for i, text in enumerate(["Count to ten.", "Cats?", "Dogs?"])]


def requests() -> dict[str, RunRequest]:
    return {
        method: RunRequest(
            method=method,
            prompt="?",
            max_new_tokens=6,
            target=str(FOLDER / "base_a"),
            drafter=str(FOLDER / "medusa_a") if method == "medusa" else None,
            settings={"total_tokens": 500} if method == "medusa" else {},
            baseline=False,
        )
        for method in ("autoregressive", "medusa")
    }


def test_lanes_take_turns_and_found_measurements_are_kept(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", {})
    seen = list(run_bench(requests(), QUESTIONS, results, ["generate"]))
    order = [measured.key for measured in results.measurements]
    lanes = ["generate", "autoregressive", "medusa"]
    assert order == [(str(i), lane) for i in range(3) for lane in lanes[i:] + lanes[:i]]
    assert [progress.num_done for progress in seen] == list(range(1, 10))
    assert sum(len(progress.notices) for progress in seen) == 1  # the clamped tree, once and not for every question
    before = list(results.measurements)
    again = list(run_bench(requests(), QUESTIONS, results, ["generate"]))
    assert all(progress.measurement is None for progress in again)
    assert results.measurements == before


def test_plain_decoding_keeps_its_gaps_and_accepts_nothing(tmp_path: Path) -> None:
    results = ResultsFile(tmp_path / "r.jsonl", {})
    list(run_bench({"autoregressive": requests()["autoregressive"]}, QUESTIONS[:1], results))
    (plain,) = results.measurements
    assert len(plain.gaps) == len(plain.output)
    assert (plain.num_steps, plain.num_draft_tokens) == (len(plain.output) - 1, 0)
