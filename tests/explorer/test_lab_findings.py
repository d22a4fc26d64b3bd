"""Findings follow the numbers: each is read off records whose numbers were chosen."""

from __future__ import annotations

import pytest

from explorer.lab_findings import (
    batch_findings,
    batch_speedups,
    change,
    context_findings,
    desync_findings,
    listed,
    needed_tokens,
    speedup_of,
    temperature_findings,
    template_findings,
    tree_findings,
)
from explorer.lab_records import Pass
from tests.support.lab import make_record, make_trial


def test_words_of_changes_and_lists() -> None:
    assert [change(2.0, after) for after in (2.02, 1.0, 3.0)] == ["about the same", "50 % less", "50 % more"]
    assert listed(["a"]) == "a" and listed(["a", "b", "c"]) == "a, b and c"


def test_temperature_tells_the_fall_and_what_typical_costs() -> None:
    found = temperature_findings(make_record("temperature"))
    assert found[0] == "EAGLE-2: 2.00 tokens per pass at temperature 0, 1.50 at 1, 25 % less."
    assert "typical acceptance takes more than rejection (1.80 against 1.50 for Medusa)" in found[-1]
    assert "no longer follows the target's distribution" in found[-1]


@pytest.mark.parametrize(("step_ms", "says"), [(10.0, "faster than"), (60.0, "slower than"), (16.0, "as fast as")])
def test_tree_says_whether_the_fastest_shape_pays(step_ms: float, says: str) -> None:
    plain = make_record("tree").trials[0]
    record = make_record("tree", [plain, make_trial(1.6, "total_tokens", 12.0, step_ms=step_ms)])
    found = tree_findings(record)
    assert f"{says} plain decoding" in found[0]
    assert "promises" in found[1] and "1.6 × as long" in found[1]
    assert found[-1].startswith("Memory: a tree of 12 rows holds")
    assert speedup_of(record.trials[1], plain) == pytest.approx(1.6 * 10 / step_ms)


def test_desync_says_how_much_is_left() -> None:
    found = desync_findings(make_record("desync"))
    assert "same token in 70 % of the places" in found[0] and "from 3 to 6" in found[0]
    assert "little of what drafts added is left (10 %)" in found[1]
    kept = make_record("desync", [make_trial(2.0, "noise", 0.0), make_trial(1.9, "noise", 0.1)], changed=[])
    assert "most of what drafts added is left (90 %)" in desync_findings(kept)[0]
    none = make_record("desync", [make_trial(1.0, "noise", 0.0)], changed=[])
    assert "no draft was accepted even without noise" in desync_findings(none)[0]


def test_batch_names_where_speculation_stops_paying() -> None:
    record = make_record("batch")
    speedups = batch_speedups(record, record.trials[0])
    one, tree = record.pass_ms(2, 1), record.pass_ms(2, 12)
    assert one and tree and speedups[2] == pytest.approx(2.0 * one / (tree + 5.0))
    assert needed_tokens(record, 2, 12) == pytest.approx(tree / one)
    assert speedups[1] > 1 > speedups[2] > speedups[4]
    assert "pays with up to 1 sequence (" in batch_findings(record)[0]
    dear = make_record("batch", passes=[Pass(1, 1, 10.0), Pass(1, 12, 100.0)])
    assert "pays in no batch here, not even with 1 sequence (0.19 ×)" in batch_findings(dear)[0]
    cheap = make_record("batch", passes=[Pass(n, rows, 10.0) for n in (1, 8) for rows in (1, 12)])
    assert "still pays with 8 sequences (1.33 ×)" in batch_findings(cheap)[0]


def test_template_compares_with_the_right_one() -> None:
    found = template_findings(make_record("template"))[0]
    assert "1.50 with none (25 % less) and 2.00 with Vicuna's (about the same)" in found
    short = [make_trial(2.0, word="its own"), make_trial(2.0, "template", 1.0, word="none", taus=[2.0])]
    assert (
        "With none only 1 of 2 prompts got more than a word of an answer"
        in template_findings(make_record("template", short))[1]
    )


def test_context_compares_up_to_the_training_text_with_beyond() -> None:
    assert "2.00 tokens per pass behind prompts of up to 512 tokens" in context_findings(make_record("context"))[0]
    assert "1.50 behind longer ones, 25 % less" in context_findings(make_record("context"))[0]
    unknown = context_findings(make_record("context", trained_length=None))[0]
    assert unknown == "EAGLE-2: 2.00 tokens per pass behind 40 tokens, 1.50 behind 800, 25 % less."
