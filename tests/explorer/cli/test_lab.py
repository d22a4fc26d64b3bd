"""``lab``: an experiment with its record, the list, an existing record, and mistakes in one line."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.cli import lab
from explorer.lab_records import EXPERIMENTS, read_record, write_record
from explorer.runner_events import RunRequest
from tests.support.goldens import FOLDER
from tests.support.lab import make_record

GOLDEN = ["--methods", "eagle2", "--target", str(FOLDER / "base_a"), "--drafter", str(FOLDER / "eagle_bias")]


def test_an_experiment_is_run_told_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "RunRequest", partial(RunRequest, ignore_stop=True))  # the tiny target would end at once
    out = tmp_path / "template.json"
    assert main(["lab", "template", *GOLDEN, "--max-new-tokens", "8", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "Chat template" in told and "with the target's own template" in " ".join(told.split())
    assert read_record(out).settings["max_new_tokens"] == 8


def test_a_record_is_shown_and_experiments_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_record(make_record("batch", target="\x1b[31mred"), tmp_path / "batch.json")
    assert main(["lab", "--show", str(tmp_path / "batch.json")]) == 0
    told = capsys.readouterr().out
    assert "pays with up to 1 sequence" in told and "\x1b[31m" not in told
    assert main(["lab", "--list"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give an experiment: temperature, tree, desync, batch, template, context or all"),
        (["magic"], "or all, not 'magic'"),
        (["tree", "--methods", "autoregressive"], "cannot be experimented with"),
        (["tree", "--methods", ","], "none cannot"),
        (["tree", "--set", "wings=2"], "no method has it"),
        (["tree", "--out", "."], "is a directory"),
        (["tree", "--methods", "eagle2", "--drafter", "medusa=x"], "medusa takes no drafter here; allowed: eagle2"),
        (["--show", "gone.json"], "is no record of the laboratory"),
        (["tree", "--target", "/no/such/folder", "--drafter", GOLDEN[-1]], "no/such/folder"),
    ],
)
def test_mistakes_are_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", *words]) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert says in line
    assert "None" not in line
