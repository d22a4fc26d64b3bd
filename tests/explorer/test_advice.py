"""Each verdict on passes made for it, with the numbers that say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.advice import FEW, Findings, Other, advise, caution, find
from explorer.insight import miss_class
from explorer.trace import GhostColumns, Step
from tests.support.traces import make_trace


def base(**changes: object) -> Findings:
    """A hundred passes of EAGLE-2 in which nothing is missed."""
    settings = {"total_tokens": 12, "depth": 3, "top_k": 4}
    found = Findings("eagle2", settings, 100, 2.0, None, {"sampled": 100}, 0, 0.0, 0.0, (80, 40))
    return replace(found, **changes)  # type: ignore[arg-type]


def kinds(found: Findings, **options: object) -> list[str]:
    return [item.kind for item in advise(found, **options)]  # type: ignore[arg-type]


def test_pruned_and_near_misses_say_widen() -> None:
    (advice,) = advise(base(num={"pruned": 20, "near": 10, "leaf": 5, "outranked": 2}, gain_leaf=0.03))
    assert (advice.kind, advice.gain) == ("widen", pytest.approx(0.33))
    assert "pruned in 20" in advice.sentence and "now top_k 4, total_tokens 12" in advice.sentence


def test_full_paths_say_deepen() -> None:
    (advice,) = advise(base(num={"deepest": 40}, gain_deepest=0.2))
    assert (advice.kind, advice.gain) == ("deepen", 0.2)
    assert "40 of 100 passes (40 %)" in advice.sentence and "now depth 3" in advice.sentence


def test_far_misses_say_retrain_and_what_gains_most_comes_first() -> None:
    found = base(num={"outranked": 30, "elsewhere": 5, "not_drafted": 10, "pruned": 20})
    assert kinds(found) == ["retrain", "widen"]
    assert advise(found)[0].gain == pytest.approx(0.45)


def test_what_reaches_the_break_even_alone_comes_before_what_gains_more() -> None:
    found = base(tau=1.5, break_even=1.6, num={"outranked": 45, "pruned": 15})
    assert kinds(found) == ["widen", "retrain"]
    assert kinds(replace(found, break_even=None)) == ["retrain", "widen"]
    assert kinds(base(tau=1.5, break_even=1.9, num={"outranked": 45, "pruned": 20})) == ["retrain", "widen"]


def test_a_method_that_cannot_pay_says_switch() -> None:
    first, *_ = advise(base(tau=1.5, break_even=4.5, num={"outranked": 50, "pruned": 20}))
    assert (first.kind, first.gain) == ("switch", None)
    assert "costs 4.50 plain ones" in first.sentence and "1.50 tokens, 2.20 with every gain" in first.sentence


def test_a_faster_method_on_the_same_prompts_says_switch() -> None:
    found = base(tau=1.5, break_even=1.5, num={"outranked": 50})
    first = advise(found, others=[Other("Medusa", 1.4, 1.3), Other("Lookahead", 1.9, 0.9)])[0]
    assert first.sentence.startswith(
        "Switch to Medusa: on the same prompts it had 1.30 times plain decoding against 1.00"
    )
    assert kinds(found, others=[Other("Lookahead", 1.9, 0.9)]) == ["retrain"]
    assert kinds(replace(found, break_even=None), others=[Other("Lookahead", 1.9, None)])[0] == "switch"


def test_guesses_are_not_retrained_and_chains_not_widened() -> None:
    found = base(method="prompt_lookup", settings={"gamma": 5}, num={"not_drafted": 30, "plain": 40}, num_no_draft=40)
    (advice,) = advise(found)
    assert advice.kind == "switch" and "40 had nothing to guess and 30 guessed wrong" in advice.sentence
    assert kinds(base(method="prompt_lookup", num={"near": 20})) == ["keep"]


def test_nothing_to_gain_says_keep() -> None:
    (advice,) = advise(base(break_even=1.2))
    assert (advice.kind, advice.gain) == ("keep", 0.0)
    assert "2.00 tokens a pass, 1.20 needed to break even" in advice.sentence


def ended(**changes: object) -> Step:
    """A pass with one drafted token, rejected; changed."""
    step = make_trace("eagle2", 2, 2).steps[0]
    tree = replace(step.tree, token=[0, 1], parent=[-1, 0], role=["root", "draft"])
    first = replace(step, tree=tree, path=[0], next_token=9, emitted=[9], next_kind="recovered", ghosts=GhostColumns())
    return replace(first, **changes)  # type: ignore[arg-type]


def test_passes_are_counted_by_how_they_ended() -> None:
    near, far = ended(next_draft_rank=4), ended(next_draft_rank=400)
    deepest = ended(path=[0, 1], emitted=[1, 9], next_kind="bonus")
    assert [miss_class(step) for step in (near, far, deepest)] == ["outranked", "outranked", None]
    found = find("eagle2", {}, [near, far, deepest, deepest])
    assert found is not None
    assert {kind: count for kind, count in found.num.items() if count} == {"near": 1, "outranked": 1, "deepest": 2}
    assert (found.tau, found.deepest) == (1.5, (4, 2))
    assert found.gain_deepest == pytest.approx(2 * 0.5 / 4)
    assert find("eagle2", {}, []) is None


def test_a_verdict_on_few_passes_says_so() -> None:
    assert caution(FEW) == ""
    assert "from 1 pass only" in caution(1)
