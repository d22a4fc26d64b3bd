"""``python app.py`` takes the same arguments as ``python -m explorer serve`` and starts without a model."""

from __future__ import annotations

import subprocess
import sys

from explorer.config import repo_path


def run_app(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repo_path("app.py")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_help_names_the_options() -> None:
    done = run_app("--help")
    assert done.returncode == 0
    assert {"--host", "--port", "--targets", "--share"} <= set(done.stdout.replace(",", " ").split())


def test_a_mistake_is_one_line_and_exit_2() -> None:
    done = run_app("--port", "many")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--port" in done.stderr
