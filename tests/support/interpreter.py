"""Triton kernels on a CPU: a file of checks in a process of its own, where Triton interprets what it would compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.structure.source import ROOT


def assert_checks_pass(file: Path) -> None:
    """Run the tests of a file that is not collected otherwise; the failure shows their own output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    answer = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert answer.returncode == 0, answer.stdout[-6000:] + answer.stderr[-2000:]
    assert " passed" in answer.stdout or "%]" in answer.stdout, answer.stdout
