"""From a name to a record that can be read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.errors import SettingError
from explorer.lab_records import EXPERIMENTS, read_record, write_record
from explorer.laboratory.run import RUNS, available, run_experiment
from explorer.runner_events import RunRequest, drain
from tests.support.goldens import FOLDER
from tests.support.lab import golden_requests


def test_every_experiment_has_its_run() -> None:
    assert tuple(RUNS) == EXPERIMENTS


def test_a_record_says_what_was_measured_and_where(tmp_path: Path) -> None:
    record, _ = drain(run_experiment("template", golden_requests("eagle2"), ["Count to ten", "Hello", "Why?"]))
    write_record(record, tmp_path / "template.json")
    assert read_record(tmp_path / "template.json").trials[0].num_steps == record.trials[0].num_steps
    assert record.target == "base_a" and record.machine.device in ("cpu", "cuda")
    assert record.settings["prompts"] == ["Count to ten", "Hello", "Why?"]
    assert record.trained_length is None and record.shape is not None and "eagle2" in record.drafters


def test_what_cannot_be_run_is_a_message() -> None:
    with pytest.raises(SettingError, match="allowed: temperature, tree"):
        drain(run_experiment("magic", golden_requests("eagle2"), ["x"]))
    nothing = [RunRequest("draft_model", target=str(FOLDER / "base_a"))]
    with pytest.raises(SettingError, match="no drafter for draft_model"):
        available(nothing)
    assert available([*nothing, *golden_requests("eagle2")]) == golden_requests("eagle2")
