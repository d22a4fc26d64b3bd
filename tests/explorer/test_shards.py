"""Shards hold every question once between them, and their merged report is that of one process, to the last byte."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from explorer.bench_markdown import to_markdown
from explorer.bench_report import AUTOREGRESSIVE, build_report
from explorer.errors import SettingError
from explorer.measurement import Measurement, ResultsFile
from explorer.shards import Shard, merge, missing, read_beside, read_machines, read_shard, results_path

LANES = [AUTOREGRESSIVE, "medusa"]
QUESTIONS = [str(number) for number in range(7)]
HEAD = {"target": "t", "methods": LANES, "question_ids": QUESTIONS}


def measured(question: str, lane: str) -> Measurement:
    """Other figures for every question and lane."""
    chance = random.Random(f"{question} {lane}")
    output = [chance.randrange(9) for _ in range(6)] if question == "3" else [1, 2, 3, 4, 5, 6]
    times = chance.uniform(1, 9), chance.uniform(50, 90)
    category = "even" if int(question) % 2 == 0 else "odd"
    accepted = 0 if lane == AUTOREGRESSIVE else chance.randrange(4)
    return Measurement(
        question, category, lane, output, "eos", 5, *times, num_steps=6 - accepted, num_accepted_draft_tokens=accepted
    )


def report(measurements: list[Measurement]) -> str:
    return json.dumps(build_report(HEAD, merge(measurements, QUESTIONS, LANES)))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9])
def test_every_question_is_in_one_shard(count: int) -> None:
    shares = [Shard(number, count).share(QUESTIONS) for number in range(1, count + 1)]
    assert sorted(question for share in shares for question in share) == QUESTIONS
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("count", [2, 4])
def test_the_merged_report_is_that_of_one_process(tmp_path: Path, count: int) -> None:
    whole = ResultsFile(tmp_path / "whole" / "results.jsonl", HEAD)
    for number, question in enumerate(QUESTIONS):
        for lane in LANES[number % 2 :] + LANES[: number % 2]:  # lanes take turns at going first
            whole.add(measured(question, lane))
    shared = tmp_path / "shared"
    for number in range(count, 0, -1):  # the last shard is done first
        shard = Shard(number, count)
        results = ResultsFile(results_path(shared, shard), HEAD, read_beside(shared, None, HEAD))
        for question in shard.share(QUESTIONS):
            for lane in LANES:
                assert (question, lane) not in results
                results.add(measured(question, lane))
    found = read_beside(shared, None, HEAD)
    assert len(found) == len(QUESTIONS) * len(LANES)
    assert report(found) == report(whole.measurements)
    markdown = [to_markdown(json.loads(report(measurements))) for measurements in (found, whole.measurements)]
    assert markdown[0] == markdown[1]


def test_what_is_missing_is_told_and_what_is_twice_counts_once() -> None:
    found = [measured("0", lane) for lane in LANES] + [measured("2", AUTOREGRESSIVE)]
    assert missing(found, ["0", "1", "2"], LANES) == ["1", "2"]
    assert merge([*found, *found], QUESTIONS, LANES) == merge(found, QUESTIONS, LANES)


def test_machines_are_told_apart(tmp_path: Path) -> None:
    for number, machine in enumerate(["a", "a", "b"], 1):
        ResultsFile(results_path(tmp_path, Shard(number, 3)), HEAD, made_on={"machine": machine}).add(
            measured(str(number), "medusa")
        )
        names = {1: {"machine": "a"}, 2: {"machine": "a"}}.get(number)
        told = read_machines(tmp_path)
        assert told == names if names else set(told["machines"]) == {f"results-{n}-of-3.jsonl" for n in (1, 2, 3)}


def test_results_of_another_benchmark_in_the_folder_are_refused(tmp_path: Path) -> None:
    ResultsFile(results_path(tmp_path, Shard(1, 2)), HEAD | {"target": "other"}).add(measured("0", "medusa"))
    with pytest.raises(SettingError, match="choose another --out"):
        read_beside(tmp_path, None, HEAD)


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "a/b", "-1/4", "1/4/2", "1/99999", "١/٤"])
def test_shards_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match="give K/N"):
        read_shard(text)
    assert read_shard(None) is None
    assert read_shard("2/4") == Shard(2, 4)
