"""The sentences carry the machine's own numbers and never call a loss a gain."""

from __future__ import annotations

from explorer.cost_words import cost_sentence, prediction_sentence, verdict_sentence
from explorer.prediction import DeviceCost, Prediction

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
