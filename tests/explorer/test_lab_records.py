"""Records round-trip, and a file that is none is told in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import RecordError
from explorer.lab_records import EXPERIMENTS, read_record, read_records, record_text, records_folder, write_record
from tests.support.lab import make_record, make_trial


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_record_comes_back_as_it_was(experiment: str, tmp_path: Path) -> None:
    record, path = make_record(experiment), tmp_path / f"{experiment}.json"
    write_record(record, path)
    assert read_record(path) == record
    assert read_records(tmp_path) == {name: record if name == experiment else None for name in EXPERIMENTS}


def test_numbers_of_a_trial() -> None:
    trial = make_trial(1.5)
    assert trial.tau == 1.5
    assert trial.alpha == pytest.approx(50 / 150)
    assert trial.depth == 2
    assert make_trial(1.0, tried_by_depth=[], accepted_by_depth=[]).alpha == 0.0


BROKEN = {
    "not JSON": lambda _: "{",
    "a list": lambda _: "[]",
    "too deep": lambda _: "[" * 100_000,
    "other schema": lambda raw: json.dumps(raw | {"schema_version": 2}),
    "other experiment": lambda raw: json.dumps(raw | {"experiment": "magic"}),
    "no trials": lambda raw: json.dumps(raw | {"trials": []}),
    "no steps": lambda raw: json.dumps(raw | {"trials": [raw["trials"][0] | {"num_steps": 0}]}),
    "impossible counts": lambda raw: json.dumps(raw | {"trials": [raw["trials"][0] | {"accepted_by_depth": [200, 1]}]}),
    "no time": lambda raw: json.dumps(raw | {"trials": [raw["trials"][0] | {"step_ms": 0}]}),
    "endless": lambda raw: json.dumps(raw).replace('"tau', '"x').replace("100", "1e999", 1),
    "a pass for nothing": lambda raw: json.dumps(raw | {"passes": [{"num_sequences": 0, "num_rows": 1, "ms": 1.0}]}),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_one_sentence(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    path.write_text(BROKEN[kind](json.loads(record_text(make_record("tree")))), encoding="utf-8")
    with pytest.raises(RecordError, match=r"^tree\.json is no record of the laboratory: \S[^\n]*$"):
        read_record(path)
    assert isinstance(read_records(tmp_path)["tree"], str)


def test_a_missing_file_and_one_of_another_experiment_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"gone\.json is no record"):
        read_record(tmp_path / "gone.json")
    write_record(make_record("batch"), tmp_path / "tree.json")
    assert read_records(tmp_path)["tree"] == "tree.json holds the experiment 'batch'"


def test_the_recorded_results_can_be_read() -> None:
    assert not [found for found in read_records(records_folder()).values() if isinstance(found, str)]
