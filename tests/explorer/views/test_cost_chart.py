"""The cost charts draw the report's numbers: ratios to one row, expected and needed tokens, the fastest tree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.prediction import CostReport, DeviceCost, Prediction
from explorer.theory import ModelShape, Peaks
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


def test_the_machines_limit_lies_under_the_passes() -> None:
    shape = ModelShape(num_weights=1000, num_bytes=4, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=1)
    cost = replace(COST, prefix_len=0, shape=shape, peaks=Peaks(bandwidth=4e5, rate=1e6))
    limit = cost_figure(CostReport("tiny", cost, {})).data[1]
    assert limit.name == "the machine's limit" and list(limit.x) == [1, 8, 64]
    assert list(limit.y) == pytest.approx([cost.floor_at(rows) / 40.0 for rows in (1, 8, 64)])
    assert limit.y[0] == pytest.approx(0.25, rel=0.01) and limit.y[2] > 3  # 10 ms to read; 128 ms to compute 64 rows
