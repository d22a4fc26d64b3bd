"""Whole runs on the Triton kernels give plain decoding's output (tests/gpu does the same where there is a GPU)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.interpreter import assert_checks_pass

pytest.importorskip("triton", reason="Triton is for Linux")


def test_whole_runs_in_the_interpreter() -> None:
    assert_checks_pass(Path(__file__).with_name("interpreted_backends.py"))
