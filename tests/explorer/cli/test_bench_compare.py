"""``bench compare`` from files to words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from explorer.__main__ import main
from explorer.bench_report import build_report
from explorer.config import repo_path
from explorer.measurement import Measurement
from tests.explorer.test_bench_compare import HEAD, measured


def write(path: Path, measurements: list[Measurement], target: str = "t") -> str:
    path.write_text(json.dumps(build_report(HEAD | {"target": target}, measurements)), encoding="utf-8")
    return str(path)


def test_the_change_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path / "a.json", measured([1.0] * 8)), write(tmp_path / "b.json", measured([1.5] * 8))]
    assert main(["bench", "compare", *files, "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "| eagle2 | speedup | 2.00 | 3.00 | ×1.50 (×1.50 to ×1.50) | ×1.50 to ×1.50 | more than the noise |" in text
    assert "| eagle2 | tau | 1.50 | 1.50 | +0.00" in text
    assert (tmp_path / "out" / "comparison.md").read_text(encoding="utf-8") == text
    raw = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    assert raw["methods"][1]["changes"][2]["verdict"] == "more"


def test_it_needs_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "for library in ('torch', 'transformers', 'gradio', 'plotly', 'numpy'): sys.modules[library] = None\n"
        "from explorer.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    )
    files = [write(tmp_path / name, measured([1.0] * 6)) for name in ("a.json", "b.json")]
    command = [sys.executable, "-c", program, "bench", "compare", *files]
    done = subprocess.run(command, cwd=repo_path(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "the same on every prompt" in done.stdout


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, other = write(tmp_path / "a.json", measured([1.0])), write(tmp_path / "b.json", measured([1.0]), "u")
    for words, says in (
        (["compare", first, other], "different targets"),
        (["compare", first], "B/report.json"),
        (["compare", first, str(tmp_path / "no.json")], "is no benchmark report"),
        (["--methods", "eagle2"], "required: --questions, --out"),
    ):
        try:
            code = main(["bench", *words])
        except SystemExit as end:
            code = end.code
        err = capsys.readouterr().err
        assert code == 2 and says in err and err.count("\n") == 1
