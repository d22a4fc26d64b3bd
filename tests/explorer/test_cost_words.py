"""The sentences carry the machine's own numbers and never call a loss a gain."""

from __future__ import annotations

from explorer.cost_words import cost_sentence, floor_sentence, prediction_sentence, verdict_sentence
from explorer.prediction import DeviceCost, Prediction
from explorer.theory import ModelShape, Peaks

COST = DeviceCost("cpu", "float32", 2, 256, {1: 40.0, 60: 140.0})


def tree(speedup: float) -> Prediction:
    return Prediction({"depth": 3, "total_tokens": 12}, 1.5 * speedup, 60.0, 1.5, 20.0, speedup)


def test_cost_in_passes_of_one_row() -> None:
    assert cost_sentence(COST) == "60 rows cost 3.5 × one row here (140 ms against 40 ms)"


def test_prediction_names_the_break_even() -> None:
    text = prediction_sentence(tree(1.2))
    assert "12 rows, depth 3: 1.80 tokens per pass expected, 1.50 needed to break even, so 1.20 ×" in text


def test_verdicts() -> None:
    assert verdict_sentence("EAGLE-2", tree(1.2)).startswith("EAGLE-2 pays here.")
    assert verdict_sentence("EAGLE-2", tree(0.9)).startswith("EAGLE-2 does not pay here.")
    assert verdict_sentence("EAGLE-2", None) == "EAGLE-2: no tree of it was profiled"


def test_floor_is_told_with_what_it_rests_on() -> None:
    shape = ModelShape(num_weights=100_000_000, num_bytes=4, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=1)
    cost = DeviceCost("cpu", "float32", 2, 0, {1: 80.0}, shape, Peaks(bandwidth=1e10, rate=5e10))
    text = floor_sentence(cost)
    assert "reads 400 MB, at 10.0 GB/s at least 40 ms: it takes 2.0 × that" in text
    assert "could carry 10 rows" in text and "50 billion operations" in text  # 2 operations a weight: 4 ms a row
    assert floor_sentence(COST) == ""
