"""``cost`` on a golden target: the tables, the sentences, the JSON, and refusals."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.prediction import PROFILE_FILE, Profile, Shape, profile_text
from tests.support.goldens import FOLDER


@pytest.fixture
def source(tmp_path: Path) -> str:
    shutil.copytree(FOLDER / "eagle_bias", tmp_path / "eagle")
    profile = Profile("eagle2", "text", 100, [Shape({"depth": 1, "top_k": 2}, [1.0, 1.2, 1.3])])
    (tmp_path / "eagle" / PROFILE_FILE).write_text(profile_text(profile))
    return str(tmp_path / "eagle")


def test_costs_are_printed_and_written(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cost.json"
    words = ["--target", str(FOLDER / "base_a"), "--drafter", source, "--methods", "eagle2", "--out", str(out)]
    assert main(["cost", *words]) == 0
    text = capsys.readouterr().out
    assert "60 rows cost" in text and "× one row here" in text
    assert "EAGLE-2 pays here." in text or "EAGLE-2 does not pay here." in text
    report = json.loads(out.read_text())
    assert list(report["cost"]["verify_ms"])[:2] == ["1", "2"]
    assert [tree["settings"]["total_tokens"] for tree in report["methods"]["EAGLE-2"]] == [2, 3]


def test_each_method_may_have_a_drafter_of_its_own(
    source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = tmp_path / "medusa"
    shutil.copytree(FOLDER / "medusa_b", heads)
    (heads / PROFILE_FILE).write_text(profile_text(Profile("medusa", "text", 100, [Shape({}, [1.0, 1.2])])))
    words = ["--target", str(FOLDER / "base_a"), "--drafter", f"medusa={heads}", "--drafter", f"eagle2={source}"]
    assert main(["cost", *words]) == 0
    text = capsys.readouterr().out
    assert "Medusa: the fastest tree" in text and "EAGLE-2: the fastest tree" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--methods", "magic"], "allowed: autoregressive"),
        (["--target", "/no/such/folder"], "no/such/folder"),
        (["--device", "toaster"], "toaster"),
        (["--drafter", "lookahead=x"], "allowed: medusa, eagle2"),
        (["--drafter", "medusa=/no/such/heads"], "/no/such/heads"),
    ],
)
def test_mistakes_are_one_line(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", *words]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert says in error
