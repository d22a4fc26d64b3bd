"""``responses`` shows the drafts of each answer, or says how to get answers that tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.__main__ import main
from tests.explorer.test_served_stats import SGLANG, VLLM


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(answer) + "\n" for answer in (VLLM, SGLANG, {"text": "?"})), encoding="utf-8")
    return path


def test_a_row_for_each_and_one_for_all(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["responses", str(answers)]) == 0
    out = capsys.readouterr().out
    for told in ("chatcmpl-1", "1.23", "2.00", "all", "1 answer without statistics left out"):
        assert told in out


def test_lines_for_scripts(answers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["responses", str(answers), "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["num_steps"], second["tau"], second["acceptance_rate"]) == (43, 2.0, 0.5)


def test_without_statistics_the_way_to_them_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"choices": []}\n', encoding="utf-8")
    assert main(["responses", str(path)]) == 2
    err = capsys.readouterr().err
    assert "--per-request-spec-decode-metrics" in err and "return_spec_tokens_details" in err and err.count("\n") == 1
    assert main(["responses", str(tmp_path / "none")]) == 2
