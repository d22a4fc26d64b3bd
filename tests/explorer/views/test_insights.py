"""Insight JSON: strict, small, complete in its labels, and the modules' own fields."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from explorer.compare import Comparison
from explorer.counterfactual import StepCuts
from explorer.errors import TraceError
from explorer.insight import visible
from explorer.microsteps import micro_steps
from explorer.moments import MicroStep
from explorer.race import Race
from explorer.side_by_side import METHOD_LABELS
from explorer.trace_diff import TraceDiff
from explorer.views.insights import (
    compare_insight,
    diff_insight,
    race_insight,
    replay_payload,
    run_insight,
    step_insight,
)
from explorer.views.viewer import view_payload
from tests.support.recorded import RECORDED, recorded
from tests.support.traces import make_trace

MAX_STEP_CHARS = 25_000  # of a step of 60 rows: a hundredth of a second's transfer


def names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def text_of(answer: dict[str, Any]) -> str:
    return json.dumps(answer, allow_nan=False, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("name", RECORDED)
def test_a_step_is_small_and_holds_its_moments(name: str) -> None:
    trace = recorded(name)
    for step in trace.steps[:: max(1, len(trace.steps) // 6)]:
        answer = step_insight(trace, step.index)
        assert len(text_of(answer)) < MAX_STEP_CHARS
        assert answer["step"] == step.index
        assert [set(moment) for moment in answer["micro"]] == [names(MicroStep)] * len(micro_steps(trace, step))
        if step.num_drafted:
            assert answer["panel"]["kind"] == ("eagle" if trace.method == "eagle2" else trace.method)
        assert set(answer["cuts"]) == names(StepCuts)


@pytest.mark.parametrize("method", METHOD_LABELS)
def test_every_answer_about_every_method_is_strict_json(method: str) -> None:
    trace = make_trace(method, 6, 20, hostile=True, acceptance="rejection")
    for answer in (
        *(step_insight(trace, step.index) for step in trace.steps),
        run_insight(trace),
        race_insight([trace, trace]),
        diff_insight(trace, trace),
        compare_insight(trace, 0, trace),
    ):
        assert text_of(answer).startswith("{")
        for label, *_ in answer["vocab"].values():
            assert label == visible(label)


def test_answers_bring_the_labels_of_their_tokens() -> None:
    trace = recorded("medusa-code")
    answer = step_insight(trace, 0)
    shown = {str(candidate["token"]) for head in answer["panel"]["heads"] for candidate in head["candidates"]}
    assert shown <= answer["vocab"].keys()
    steps = [replace(trace.steps[0], extra={"window_tokens": [[1, 2]], "guess_tokens": [[3]], "added_tokens": [[4]]})]
    looking = replace(make_trace("lookahead", 1, 6), steps=steps, vocab=trace.vocab | make_trace().vocab)
    assert {"1", "2", "3", "4"} <= step_insight(looking, 0)["vocab"].keys()


def test_numbers_have_five_digits() -> None:
    trace = recorded("eagle2-code")
    answer = step_insight(trace, 0)
    verify = next(moment["ms"] for moment in answer["micro"] if moment["kind"] == "verify")
    assert verify == float(f"{trace.steps[0].ms.verify:.5g}")


def test_a_run_has_its_four_parts() -> None:
    answer = run_insight(recorded("eagle2-code"))
    assert set(answer) == {"speed", "misses", "budgets", "calibration", "vocab"}
    assert [each["question"] for each in answer["calibration"]] == ["next", "path"]
    assert answer["budgets"]["curves"][-1]["tau"][-1] == pytest.approx(
        recorded("eagle2-code").stats.mean_acceptance_length, abs=1e-4
    )


def test_several_runs() -> None:
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    assert set(race_insight([eagle, medusa])) == names(Race) | {"vocab"}
    diff = diff_insight(eagle, medusa)
    assert set(diff) == names(TraceDiff) | {"shared", "texts", "vocab"}
    for text, trace in zip(diff["texts"], (eagle, medusa), strict=True):
        assert text["tokens"] == trace.output.token_ids
        assert text["passes"][-1] == len(trace.steps)
        assert {str(token) for token in text["tokens"]} <= diff["vocab"].keys()


def test_a_comparison_brings_the_other_runs_step() -> None:
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    compared = compare_insight(eagle, 3, medusa)
    assert set(compared) == names(Comparison) | {"other", "vocab"}
    here, there = compared["sides"]
    assert [here["label"], there["label"]] == ["EAGLE-2", "Medusa"]
    assert compared["other"]["i"] == there["step"]
    assert compared["other"]["tok"] == medusa.steps[there["step"]].tree.token
    assert {str(token) for token in compared["other"]["tok"]} <= compared["vocab"].keys()
    assert len(text_of(compared)) < MAX_STEP_CHARS


def test_a_step_that_is_not_there_is_refused_in_words() -> None:
    trace = make_trace(steps=3)
    for index in (-1, 3):
        with pytest.raises(TraceError, match=f"there is no step {index}: this run has 3"):
            step_insight(trace, index)


def without_vocab(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "vocab"}


@pytest.mark.parametrize("method", ["eagle2", "medusa"])
def test_a_replay_holds_every_answer_about_its_run_and_each_label_once(method: str) -> None:
    trace = make_trace(method, 5, 12, hostile=True)
    replay = replay_payload(trace)
    answers = [step_insight(trace, step.index) for step in trace.steps]
    assert replay["insights"] == {
        "steps": [without_vocab(answer) for answer in answers],
        "run": without_vocab(run_insight(trace)),
        "race": without_vocab(race_insight([trace])),
    }
    view = view_payload(trace)
    assert {name: replay[name] for name in view if name != "vocab"} == without_vocab(view)
    for answer in (view, *answers, run_insight(trace)):
        assert answer["vocab"].items() <= replay["vocab"].items()


@pytest.mark.parametrize("name", RECORDED)
def test_a_replay_of_a_recorded_run_stays_small(name: str) -> None:
    trace = recorded(name)
    assert len(text_of(replay_payload(trace))) < 30_000 * len(trace.steps)


def test_a_run_that_ended_with_its_first_token_has_a_replay() -> None:
    assert replay_payload(make_trace(steps=0))["insights"]["steps"] == []
