"""Figures from the laboratory's records, and what a lesson says in words about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.errors import TraceError
from explorer.lab_records import LabRecord, shown_records
from explorer.lessons.figures import Recordings, Scene, fill
from explorer.lessons.lab_figures import LAB_FIGURES
from explorer.lessons.steps import find_step
from tests.support.traces import make_trace

RECORDS = shown_records()


def figure(name: str) -> float:
    experiment, compute = LAB_FIGURES[name]
    value = compute(RECORDS[experiment])
    assert value is not None
    return float(value)


def scene(experiments: dict[str, LabRecord]) -> Scene:
    trace = make_trace("eagle2", 3, 8)
    return Scene(trace, find_step(trace, "first"), Recordings({}, {}.__getitem__, experiments))


@pytest.mark.parametrize("name", LAB_FIGURES)
def test_the_records_have_every_figure(name: str) -> None:
    experiment, compute = LAB_FIGURES[name]
    assert compute(RECORDS[experiment])


@pytest.mark.parametrize("name", LAB_FIGURES)
def test_a_record_without_its_measurements_has_no_figure(name: str) -> None:
    experiment, compute = LAB_FIGURES[name]
    empty = replace(RECORDS[experiment], trials=[], passes=[], changed=[], shape=None)
    assert compute(empty) is None


def test_figures_come_from_the_record() -> None:
    passes = {item.num_rows: item.ms for item in RECORDS["tree"].passes}
    assert fill("{lab_cost_8} {lab_batch_most}", scene(RECORDS)) == (
        f"{passes[8] / passes[1]:.1f} {max(item.num_sequences for item in RECORDS['batch'].passes)}"
    )


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(TraceError, match="laboratory's record 'batch', which is not here"):
        fill("{lab_batch_rows}", scene({"tree": RECORDS["tree"]}))
    with pytest.raises(TraceError, match="no value in the record 'batch'"):
        fill("{lab_batch_rows}", scene({"batch": replace(RECORDS["batch"], passes=[])}))


def test_what_the_lesson_says_is_so_in_the_records() -> None:
    assert figure("lab_cost_8") < 1.5 < 2.5 < figure("lab_cost_64"), "a few rows ride along, many do not"
    assert figure("lab_best_rows") < figure("lab_many_rows")
    assert figure("lab_best_speedup") > 1 > figure("lab_many_speedup")
    assert figure("lab_best_tau") < figure("lab_many_tau"), "more rows catch more"
    assert figure("lab_needed_alone") < 2 < figure("lab_needed_crowd")
    assert figure("lab_hot_tau") < 1.1 < figure("lab_cold_tau"), "hardly more than the target's own token"
