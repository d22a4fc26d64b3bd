"""The diagnosis on the page: every row names its run and step, the charts hold the tallies' and bins' numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from explorer.diagnose import Diagnosis, Subject, diagnose
from explorer.views.diagnosis import NUM_SHOWN, diagnosis_view, miss_figure, reliability_figure, shown
from tests.support.traces import make_trace

IDS = ["a", "b", "c"]


def made() -> Diagnosis:
    traces = [make_trace("eagle2", 20, seed=0), make_trace("medusa", 20, seed=1), make_trace("eagle2", 20, seed=2)]
    return diagnose([Subject(trace) for trace in traces])


def test_rows_name_their_run_and_step() -> None:
    found = made()
    view = diagnosis_view(found, IDS, "three runs")
    prompts, spans = view["ranking"]
    assert [(row["id"], row["step"]) for row in prompts["rows"]] == [
        (IDS[row.run], row.worst_step) for row in found.prompts
    ]
    assert f"step {found.prompts[0].worst_step + 1}: " in prompts["rows"][0]["cells"][-1], "as the viewer counts"  # type: ignore[operator]
    assert {row["id"] for row in spans["rows"]} <= set(IDS)
    assert view["overview"]["rows"][0]["id"] is None
    endings = view["methods"][0]["tables"][0]
    assert [(row["id"], row["step"]) for row in endings["rows"]] == [
        (IDS[ending.run], ending.step) for ending in found.methods[0].endings
    ]
    assert all(row["id"] is None for table in view["methods"][0]["tables"][1:] for row in table["rows"])
    assert [verdict["label"] for verdict in view["verdicts"]] == ["EAGLE-2", "Medusa"]
    assert json.loads(json.dumps(view, allow_nan=False)) == view


def test_charts_hold_the_numbers() -> None:
    found = made()
    bars = miss_figure(found).data
    assert [tuple(bar.y) for bar in bars[:3]] == [
        tuple(each.acceptance for each in tallies if each.acceptance is not None)
        for tallies in (found.methods[0].by_class, found.methods[0].by_position, found.methods[0].by_entropy)
    ]
    figure = reliability_figure(found)
    assert figure is not None
    lines = [line for line in figure.data if line.customdata is not None]
    first = found.methods[0].calibrations[0]
    assert [(x, y) for x, y in zip(lines[0].x, lines[0].y, strict=True)] == [
        (each.confidence, each.accepted) for each in first.bins
    ]
    assert len(lines) == sum(len(item.calibrations) for item in found.methods)


def test_without_confidence_there_is_no_diagram_and_of_many_methods_few_are_drawn() -> None:
    assert reliability_figure(diagnose([Subject(make_trace("prompt_lookup", 8))])) is None
    trace = make_trace("eagle2", 6)
    many = [Subject(replace(trace, settings={"depth": depth})) for depth in range(NUM_SHOWN + 2)]
    drawn = [bar.name for bar in miss_figure(diagnose(many)).data if bar.visible is True and bar.showlegend]
    assert len(drawn) == NUM_SHOWN


def test_a_setting_of_any_make_is_no_markup() -> None:
    trace = make_trace("eagle2", 6)
    names = ["<b>%{x}", "other"]
    found = diagnose([Subject(replace(trace, settings={"tree": name})) for name in names])
    assert all("<b>" not in bar.name and "%{x}" not in bar.name for bar in miss_figure(found).data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("‘\u2068a\u2069’ was", "‘\u2068a\u2069’ was"),
        ("\u202eevil\u202c", "⟨U+202E⟩evil⟨U+202C⟩"),
        ("open \u2068", "open \u2068"),
        ("\u2069shut\u2069", "\u2068shut\u2069"),
        ("", ""),
    ],
)
def test_nothing_invisible_is_left_but_isolates(text: str, expected: str) -> None:
    assert shown(text) == expected
