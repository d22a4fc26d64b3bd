"""The benchmark's figures, by hand on a few measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.bench_markdown import to_markdown
from explorer.bench_report import build_report
from explorer.measurement import Measurement
from explorer.metrics import HeadCount
from explorer.trace import DrafterRecord

HEAD = {"target": "t"}
PLAIN = Measurement(
    "1", "chat", "autoregressive", [5, 6, 7, 8], "eos", 9, 20.0, 300.0, num_steps=3, gaps=[1, 1, 2e-4, 1]
)
DRAFTED = Measurement(
    "1", "chat", "eagle2", [5, 6, 7, 8], "eos", 9, 22.0, 150.0,
    {"draft": 30.0, "verify": 105.0, "commit": 3.0, "other": 12.0, "record": 6.0}, 2, 20, 1, [1, 1], [2, 1], [1, 0],
)  # fmt: skip
SECOND = (
    replace(PLAIN, question_id="2", category="maths", decode_ms=600.0),
    replace(DRAFTED, question_id="2", category="maths", num_steps=1, num_accepted_draft_tokens=2, decode_ms=600.0),
)


def test_tau_is_pooled_over_steps_and_speedup_is_the_median_of_ratios() -> None:
    report = build_report(HEAD, [PLAIN, DRAFTED, *SECOND])
    row = report["methods"]["eagle2"]
    assert report["num_questions"] == 2
    assert row["tau"] == pytest.approx(1 + 3 / 3)
    assert row["by_category"]["maths"]["tau"] == pytest.approx(3.0)
    assert row["speedup"]["median"] == pytest.approx(1.5)  # 2.0 and 1.0
    assert row["acceptance_by_depth"] == pytest.approx([0.5, 0.0])
    assert row["acceptance_histogram"] == [2, 2]
    assert row["draft_acceptance_rate"] == pytest.approx(3 / 40)
    assert row["num_equal"] == 2
    assert report["methods"]["autoregressive"]["tau"] == 1
    assert report["methods"]["autoregressive"]["speedup"]["median"] == 1


def test_time_shares_leave_recording_out_of_the_whole() -> None:
    share = build_report(HEAD, [PLAIN, DRAFTED])["methods"]["eagle2"]["time_share"]
    assert share["draft"] + share["verify"] + share["commit"] + share["other"] == pytest.approx(1)
    assert share["record"] == pytest.approx(0.04)
    outside = build_report(HEAD, [replace(PLAIN, method="generate")])["methods"]["generate"]
    assert set(outside["time_share"].values()) == {None}, "its parts are not measured"


@pytest.mark.parametrize(
    ("output", "index", "is_near_tie"), [([5, 6, 9, 8], 2, True), ([5, 1, 7, 8], 1, False), ([5, 6, 7], 3, False)]
)
def test_the_first_divergence_is_listed_with_its_gap(output: list[int], index: int, is_near_tie: bool) -> None:
    row = build_report(HEAD, [PLAIN, replace(DRAFTED, output=output)])["methods"]["eagle2"]
    assert row["num_equal"] == 0
    (found,) = row["divergences"]
    assert (found["index"], found["is_near_tie"]) == (index, is_near_tie)
    assert f"question 1: token {index}" in to_markdown(build_report(HEAD, [PLAIN, replace(DRAFTED, output=output)]))


def test_a_single_token_has_no_speed() -> None:
    alone = replace(DRAFTED, output=[5], decode_ms=0.0, num_steps=0, split_ms={})
    report = build_report(HEAD, [PLAIN, alone])
    assert report["methods"]["eagle2"]["tokens_per_second"] is None
    assert "–" in to_markdown(report)


def test_heads_and_memory_are_pooled_and_absent_where_there_are_none() -> None:
    drafter = DrafterRecord("heads", 100, 400)
    medusa = replace(
        DRAFTED, method="medusa", drafter=drafter, target_bytes=1600, heads=[HeadCount(4, 2, 3), HeadCount(3, 0, 1)]
    )
    other = replace(medusa, question_id="2", category="maths", heads=[HeadCount(4, 1, 4)])
    report = build_report(HEAD, [PLAIN, medusa, other])
    row = report["methods"]["medusa"]
    assert row["acceptance_by_head"] == [
        {"num_steps": 8, "first": 3 / 8, "listed": 7 / 8},
        {"num_steps": 3, "first": 0.0, "listed": 1 / 3},
    ]
    assert row["by_category"]["maths"]["acceptance_by_head"] == [{"num_steps": 4, "first": 0.25, "listed": 1.0}]
    assert row["drafter"] == {"name": "heads", "num_bytes": 400, "share_of_target": 0.25}
    assert report["target_bytes"] == 1600
    plain = report["methods"]["autoregressive"]
    assert (plain["drafter"], plain["acceptance_by_head"]) == (None, [])


def test_each_prompt_keeps_its_own_figures() -> None:
    rows = build_report(HEAD, [PLAIN, DRAFTED, *SECOND])["methods"]["eagle2"]["by_prompt"]
    assert [(row["question_id"], row["tau"], row["speedup"]) for row in rows] == [("1", 1.5, 2.0), ("2", 3.0, 1.0)]
