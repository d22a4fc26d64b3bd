"""The words for acceptance rules: one label and one sentence each, and the numbers of a test."""

from __future__ import annotations

import pytest

from explorer.config import ACCEPTANCES
from explorer.insight import depths
from explorer.rules import RULE_SENTENCES, draw_text, rule_label, sampling_text, settings_texts
from explorer.trace import DrawRecord, SamplingRecord
from tests.support.recorded import recorded


def test_the_rule_that_changes_the_distribution_says_so_wherever_it_is_named() -> None:
    assert rule_label("rejection") == "rejection"
    assert rule_label("typical") == "typical (not distribution-preserving)"
    assert set(RULE_SENTENCES) == set(ACCEPTANCES)
    assert [rule for rule, text in RULE_SENTENCES.items() if "not distribution-preserving" in text] == ["typical"]


@pytest.mark.parametrize(
    ("sampling", "text"),
    [
        (SamplingRecord(0.0, 0.9, 40, 3, "greedy"), "greedy"),
        (SamplingRecord(0.7, 1.0, 0, 3, "rejection"), "rejection, temperature 0.7, seed 3"),
        (SamplingRecord(1.0, 0.9, 40, 0, "rejection"), "rejection, temperature 1, top_p 0.9, top_k 40, seed 0"),
        (SamplingRecord(0.7, 1.0, 0, 3, "typical"), "typical (not distribution-preserving), temperature 0.7"),
    ],
)
def test_sampling_in_a_few_words(sampling: SamplingRecord, text: str) -> None:
    assert sampling_text(sampling) == text


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (DrawRecord(1, None, 1.0, True), None),
        (DrawRecord(1, 0.2, None, True), None),
        (DrawRecord(1, 0.2, 0.37123, True), "draw 0.2 < 0.371"),
        (DrawRecord(1, 0.41, 0.37, False, None, 0.63), "draw 0.41 ≥ 0.37, residual 63 %"),
        (DrawRecord(1, None, 0.5, True, 0.09), "0.5 > threshold 0.09"),
        (DrawRecord(1, None, 0.05, False, 0.09), "0.05 ≤ threshold 0.09"),
    ],
)
def test_the_numbers_of_a_test(draw: DrawRecord, text: str | None) -> None:
    assert draw_text(draw) == text


def test_settings_say_how_many_levels_a_tree_has_and_only_what_the_rule_reads() -> None:
    trace = recorded("eagle2-code")
    deepest = max(depth for step in trace.steps for depth in depths(step.tree.parent))
    assert settings_texts(trace) == ["total_tokens 12", f"depth 3 (root + {deepest} levels)", "top_k 4"]
    assert settings_texts(recorded("medusa-chat")) == ["tree smollm2-63", "total_tokens 10"]
    assert settings_texts(recorded("medusa-chat-typical"))[2:] == ["threshold 0.09", "alpha 0.3"]
