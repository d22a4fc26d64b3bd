"""``diagnose`` from end to end: on golden models, on existing traces without torch, and refused in words."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from explorer.__main__ import main
from explorer.cli.diagnose import show
from explorer.config import repo_path
from explorer.diagnose import Subject, diagnose
from explorer.trace import read_trace, write_trace
from tests.support.goldens import FOLDER
from tests.support.traces import make_trace
from tests.support.words import HOSTILE

MODELS = ["--target", str(FOLDER / "base_a"), "--drafter", str(FOLDER / "eagle_bias"), "--max-new-tokens", "16"]
WITHOUT_TORCH = """
import sys
for library in ("torch", "transformers", "gradio", "plotly", "numpy"):
    sys.modules[library] = None
from explorer.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_questions_are_run_ranked_and_written_and_the_traces_fed_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = tmp_path / "q.jsonl"
    lines = [{"question_id": name, "category": "c", "turns": [f"Count to {name}."]} for name in ("../x y", "2")]
    questions.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    places = ["--traces", str(tmp_path / "traces"), "--out", str(tmp_path / "d.md")]
    assert (
        main(["diagnose", "--method", "eagle2,eagle1", "--questions", str(questions), *MODELS, *places, "--json"]) == 0
    )
    first = json.loads(capsys.readouterr().out)
    assert (first["schema"], first["schema_version"]) == ("draft-tree-diagnosis", 1)
    assert [method["num_runs"] for method in first["methods"]] == [2, 2]
    files = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert files == ["001-eagle2-x-y.json.gz", "002-eagle1-x-y.json.gz", "003-eagle2-2.json.gz", "004-eagle1-2.json.gz"]
    assert {row["category"] for row in first["prompts"]} == {"c"}
    assert (tmp_path / "d.md").read_text(encoding="utf-8").startswith("# Diagnosis\n")
    traces = [str(tmp_path / "traces" / name) for name in files]
    assert read_trace(traces[0]).baseline is not None
    assert main(["diagnose", *traces, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["methods"] == first["methods"]
    assert again["spans"] == first["spans"]


def test_a_prompt_is_told_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--prompt", "Tell me about cats.", "--no-baseline", "--set", "eagle2.depth=2"]
    assert main(["diagnose", "--method", "eagle2", *words, *MODELS]) == 0
    text = capsys.readouterr().out
    for part in ("Prompts", "By kind of token", "By the target's entropy", "EAGLE-2: what would help"):
        assert part in text


def test_each_method_has_its_own_drafter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drafters = ["--drafter", f"medusa={FOLDER / 'medusa_a'}", "--drafter", f"eagle2={FOLDER / 'eagle_bias'}"]
    words = ["--target", MODELS[1], *drafters, "--max-new-tokens", "4", "--prompt", "Cats.", "--no-baseline"]
    assert main(["diagnose", "--method", "medusa,eagle2", *words, "--traces", str(tmp_path)]) == 0
    capsys.readouterr()
    traces = [read_trace(path) for path in sorted(tmp_path.iterdir())]
    assert [trace.drafter and trace.drafter.name for trace in traces] == ["medusa_a", "eagle_bias"]
    assert main(["diagnose", "--method", "eagle2", *words]) == 2
    assert "medusa takes no drafter here; allowed: eagle2" in " ".join(capsys.readouterr().err.split())


def test_the_worst_pass_comes_with_the_command_that_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my runs" / "t.json.gz"
    write_trace(make_trace(steps=20), file)
    assert main(["diagnose", str(file)]) == 0
    found = re.search(r"drawn: python -m explorer (.*)", capsys.readouterr().out)
    assert found
    words = shlex.split(found[1])
    assert words[:3] == ["show", str(file), "--step"]
    assert main(words) == 0
    assert f"step {words[3]} of 20" in capsys.readouterr().out


def test_traces_need_no_torch(tmp_path: Path) -> None:
    write_trace(make_trace(steps=20), tmp_path / "t.json.gz")
    command = [sys.executable, "-c", WITHOUT_TORCH, "diagnose", str(tmp_path / "t.json.gz")]
    done = subprocess.run(command, cwd=repo_path(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "what would help" in done.stdout


def test_a_prompt_that_cannot_be_decoded_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = tmp_path / "q.txt"
    questions.write_text("Count.\n" + "word " * 3000 + "\n", encoding="utf-8")
    assert main(["diagnose", "--method", "eagle2", "--questions", str(questions), *MODELS, "--json"]) == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["prompts"]) == 1
    assert "left out:" in captured.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give exactly one of"),
        (["--prompt", "x"], "--method: none cannot be diagnosed"),
        (["--prompt", "x", "--method", "autoregressive"], "autoregressive cannot be diagnosed"),
        (["--prompt", "x", "--questions", "q"], "give exactly one of"),
        (["/nowhere.json"], "cannot read /nowhere.json"),
        (["/nowhere.json", "--method", "eagle2"], "leave --method"),
        (["--prompt", "x", "--method", "eagle2", "--out", "/"], "--out / is a directory"),
        (
            ["--prompt", "x", "--method", "eagle2", "--traces", "/dev/null/x"],
            "trace.json.gz cannot be written",
        ),
        (["--questions", "q", "--method", "eagle2", "--every", "0"], "--every must be"),
        (["--prompt", "x", "--method", "eagle2", "--set", "magic=1"], "no method has it"),
        (["--prompt", "x", "--method", "eagle2", "--max-new-tokens", "0"], "max_new_tokens must be at least 1"),
        (["--prompt", " ", "--method", "eagle2"], "the prompt is empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["diagnose", *words]) == 2
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1


def test_nothing_hostile_steers_the_terminal() -> None:
    trace = make_trace(hostile=True, steps=20)
    traces = [replace(trace, prompt=replace(trace.prompt, text=f"\x1b[2J[red]{text}")) for text in HOSTILE]
    console = Console(force_terminal=False, width=200, record=True)
    with console.capture() as capture:
        show(diagnose([Subject(each) for each in traces]), console)
    text = capture.get()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
    assert "[red]" in text
