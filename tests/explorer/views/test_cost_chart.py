"""The cost charts draw the report's numbers: ratios to one row, expected and needed tokens, the fastest tree."""

from __future__ import annotations

import pytest

from explorer.prediction import CostReport, DeviceCost, Prediction
from explorer.views.cost_chart import cost_figure

COST = DeviceCost("cpu", "float32", 2, 256, {1: 40.0, 8: 50.0, 64: 160.0})
TREES = [
    Prediction({"depth": 1, "total_tokens": 4}, 1.4, 50.0, 1.25, 28.0, 1.12),
    Prediction({"depth": 2, "total_tokens": 8}, 1.6, 56.0, 1.4, 28.6, 1.14),
]


def test_the_curves_are_the_reports() -> None:
    passes, expected, needed, fastest = cost_figure(CostReport("tiny", COST, {"EAGLE-2": TREES})).data
    assert list(passes.x) == [1, 8, 64] and list(passes.y) == pytest.approx([1.0, 1.25, 4.0])
    assert list(expected.x) == [4, 8] and list(expected.y) == [1.4, 1.6]
    assert list(needed.y) == [1.25, 1.4]
    assert (list(fastest.x), list(fastest.y), list(fastest.text)) == ([8], [1.6], ["1.14 ×"])


def test_costs_alone_are_drawn_too() -> None:
    assert len(cost_figure(CostReport("tiny", COST, {})).data) == 1
    assert len(cost_figure(CostReport("tiny", COST, {"EAGLE-2": []})).data) == 1
