"""Every experiment's figure draws the record's own numbers."""

from __future__ import annotations

import pytest

from explorer.lab_records import EXPERIMENTS
from explorer.theory import expected_tokens
from explorer.views.lab_charts import lab_figure
from tests.support.lab import PASSES, make_record, make_trial


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_figure_has_every_tau_and_no_empty_chart(experiment: str) -> None:
    record = make_record(experiment)
    figure = lab_figure(record)
    drawn = [value for trace in figure.data for value in trace.y]
    assert all(trial.tau in drawn for trial in record.trials if trial.depth)
    axes = {trace.xaxis or "x" for trace in figure.data}
    assert len(axes) == sum(1 for name in figure.layout if name.startswith("xaxis"))
    named = [trace.name for trace in figure.data if trace.showlegend]
    assert len(named) == len(set(named)), "each lane stands in the legend once"


def test_the_formula_stands_beside_the_points() -> None:
    record = make_record("temperature")
    dotted = [trace for trace in lab_figure(record).data if trace.line.dash == "dot"]
    assert dotted[0].y == tuple(expected_tokens(trial.alpha, trial.depth) for trial in record.trials[:2])


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_a_record_with_one_trial_draws_it(experiment: str) -> None:
    only = make_trial(1.5, "total_tokens")
    record = make_record(experiment, [only], passes=PASSES[:1], changed=[], trained_length=None)
    assert 1.5 in [value for trace in lab_figure(record).data for value in trace.y]
