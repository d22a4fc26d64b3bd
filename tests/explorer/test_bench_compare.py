"""Two reports compared: paired by prompt, judged against the noise, refused where they measure something else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer.bench_compare import MethodChange, Report, compare_reports, median_interval, read_report
from explorer.bench_report import build_report
from explorer.errors import SettingError
from explorer.measurement import Measurement
from tests.explorer.test_bench_report import DRAFTED, PLAIN

IDS = [str(number) for number in range(8)]
HEAD = {"target": "t", "questions": "q.jsonl", "question_ids": IDS, "max_new_tokens": 16}


def measured(factors: list[float], accepted: int = 1) -> list[Measurement]:
    """A prompt each factor: how much faster the drafted lane is than in the first report."""
    plain = [replace(PLAIN, question_id=IDS[i]) for i in range(len(factors))]
    drafted = [
        replace(DRAFTED, question_id=IDS[i], decode_ms=150.0 / factor, num_accepted_draft_tokens=accepted)
        for i, factor in enumerate(factors)
    ]
    return [*plain, *drafted]


def report(tmp_path: Path, name: str, measurements: list[Measurement], **head: Any) -> Report:
    path = tmp_path / name
    path.write_text(json.dumps(build_report(HEAD | head, measurements)), encoding="utf-8")
    return read_report(path)


def eagle2(before: Report, after: Report) -> MethodChange:
    return next(item for item in compare_reports(before, after).methods if item.method == "eagle2")


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ([1.1, 1.2, 1.12, 1.3, 1.15, 1.2, 1.18, 1.25], "more"),
        ([0.9, 1.2, 1.0, 0.8, 1.1, 0.95, 1.05, 1.1], "noise"),
        ([1.0] * 8, "same"),
        ([1.5] * 5, "unknown"),
    ],
)
def test_a_change_is_judged_against_the_spread_over_prompts(tmp_path: Path, factors: list[float], verdict: str) -> None:
    before = report(tmp_path, "a", measured([1.0] * len(factors)))
    speedup = eagle2(before, report(tmp_path, "b", measured(factors))).changes[2]
    assert (speedup.figure, speedup.verdict, speedup.num_prompts) == ("speedup", verdict, len(factors))
    assert speedup.change is not None
    if verdict == "more":
        assert (speedup.low, speedup.high) == (pytest.approx(1.1), pytest.approx(1.3))
        assert speedup.sentence == "speedup 2.00 → 2.38, per prompt × 1.19 (1.14 to 1.21): more than the noise"


def test_tau_changes_by_a_difference(tmp_path: Path) -> None:
    before, after = (report(tmp_path, str(n), measured([1.0] * 8, n)) for n in (1, 2))
    tau = eagle2(before, after).changes[0]
    assert (tau.before, tau.after, tau.low, tau.verdict) == (1.5, 2.0, 0.5, "more")


def test_settings_and_the_machine_are_told(tmp_path: Path) -> None:
    slower = [replace(item, decode_ms=item.decode_ms * 1.5) for item in measured([1.0] * 8)]
    slower = [replace(item, settings={"depth": 3}) if item.method == "eagle2" else item for item in slower]
    found = compare_reports(
        report(tmp_path, "a", measured([1.0] * 8)), report(tmp_path, "b", slower, max_new_tokens=32, threads=2)
    )
    assert found.methods[1].settings == "depth not there → 3"
    assert found.methods[1].changes[2].verdict == "same", "the speedup does not move with the machine"
    assert "max_new_tokens: 16 → 32" in found.notes and "threads: not told → 2" in found.notes
    assert any(note.startswith("plain decoding itself changed") for note in found.notes)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ({"target": "other"}, "different targets, t and other"),
        ({"question_ids": IDS[:-1], "questions": "x.txt"}, "different questions, q.jsonl (8 questions) and x.txt"),
        ({"questions_sha256": "b"}, "different questions"),
        ({"question_ids": None}, "does not say which questions"),
    ],
)
def test_other_questions_or_targets_are_refused(tmp_path: Path, head: dict[str, Any], says: str) -> None:
    before = report(tmp_path, "a", measured([1.0] * 8), questions_sha256="a")
    with pytest.raises(SettingError, match=r".*") as caught:
        compare_reports(before, report(tmp_path, "b", measured([1.0] * 8), **head))
    assert says in str(caught.value)


def test_reports_of_an_earlier_version_are_judged_by_their_quartiles(tmp_path: Path) -> None:
    raw = build_report(HEAD, measured([1.0] * 8))
    for name in ("schema", "schema_version", "target_bytes"):
        del raw[name]
    for row in raw["methods"].values():
        del row["by_prompt"]
    (tmp_path / "a").write_text(json.dumps(raw), encoding="utf-8")
    before = read_report(tmp_path / "a")
    found = compare_reports(before, report(tmp_path, "b", measured([1.5] * 8)))
    changes = {change.figure: change.verdict for change in found.methods[1].changes}
    assert changes == {"tau": "unknown", "tokens_per_second": "more", "speedup": "more"}
    assert any("earlier version" in note for note in found.notes)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"bench": {}, "num_questions": 1, "methods": {"a": 3}}', "\x00", "[" * 5000],
    ids=["empty", "list", "object", "mistyped", "nul", "deep"],
)
def test_what_is_no_report_is_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    with pytest.raises(SettingError, match="is no benchmark report"):
        read_report(tmp_path / "r.json")


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    raw = build_report(HEAD, measured([1.0])) | {"schema_version": 9}
    (tmp_path / "r.json").write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(SettingError, match="version 9"):
        read_report(tmp_path / "r.json")


def test_the_interval_needs_six_values_and_holds_the_middle() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([6, 5, 4, 3, 2, 1]) == (1, 6), "misses with a chance of 2/64"
    assert median_interval(range(1, 21)) == (6, 15), "of twenty: 2 P(Binomial(20, 1/2) < 6) is 4.1 %"
