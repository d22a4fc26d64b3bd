"""The question asked of the Triton attention before it is trusted: answered in the interpreter."""

from __future__ import annotations

from pathlib import Path

from tests.support.interpreter import assert_checks_pass


def test_its_answers_in_the_interpreter() -> None:
    assert_checks_pass(Path(__file__).with_name("interpreted_agreement.py"))
