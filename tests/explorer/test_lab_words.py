"""Every experiment has its texts, and the formula's error is the one that can be worked out."""

from __future__ import annotations

import pytest

from explorer.lab_records import EXPERIMENTS
from explorer.lab_words import command_of, formula_sentence, lab_text, question_of, title_of
from explorer.theory import expected_tokens
from tests.support.lab import make_record, make_trial


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_has_texts(experiment: str) -> None:
    text = lab_text(make_record(experiment))
    assert (text.title, text.question) == (title_of(experiment), question_of(experiment))
    assert text.findings and all(finding.endswith(".") for finding in text.findings)
    assert "on Tiny target" in text.measured and "32 new tokens" in text.measured
    assert text.made == (
        "2026-01-02, a made-up CPU (cpu), float32, 2 threads, load average 0.1 at the start, took 60 s."
    )
    assert command_of(experiment) == f"python -m explorer lab {experiment}"


def test_a_lane_with_a_comma_is_listed_as_one() -> None:
    lanes = [make_trial(1.5, "temperature", 0.0, lane=lane) for lane in ("Medusa", "Medusa, typical", "EAGLE-2")]
    assert lab_text(make_record("temperature", lanes)).measured.startswith(
        "Measured: Medusa, Medusa typical and EAGLE-2 on "
    )


def test_the_formula_is_compared_with_its_worst_point() -> None:
    near = make_trial(1.5, "temperature", 0.0, tried_by_depth=[100], accepted_by_depth=[50])
    far = make_trial(
        1.8, "temperature", 1.0, tried_by_depth=[100, 40, 40], accepted_by_depth=[40, 40, 0], lane="Medusa"
    )
    assert expected_tokens(near.alpha, near.depth) == pytest.approx(near.tau)
    error = expected_tokens(far.alpha, 3) / far.tau - 1
    said = formula_sentence(make_record("temperature", [near, far]))
    assert (
        f"{100 * abs(error):.2g} % {'more' if error > 0 else 'less'} than measured here (Medusa, temperature 1)" in said
    )
    assert "independently" in said
    assert (
        formula_sentence(make_record("temperature", [make_trial(1.0, tried_by_depth=[], accepted_by_depth=[])])) == ""
    )
