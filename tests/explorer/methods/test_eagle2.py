"""EAGLE-2 against the original implementation's figures, and where the original is wrong, against the definition."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.checkpoints.eagle import load_eagle
from explorer.methods.eagle2 import Eagle2, Eagle2Settings
from tests.support.goldens import FOLDER, TIE_GAP, golden, golden_target, replay
from tests.support.tiny import tiny_drafter, tiny_target

TIED = tiny_target(vocab_size=6)
SETTINGS = [(60, 5, 10), (10, 3, 4), (8, 1, 8), (7, 5, 1)]


def runs_of(name: str, setting: tuple[int, int, int]) -> list[dict[str, Any]]:
    return [run for run in golden(f"eagle2__{name}")["runs"] if tuple(run["setting"]) == setting]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(("base", "name"), [("base_a", "eagle_bias"), ("base_b", "eagle_nobias")])
def test_every_round_equals_the_original(base: str, name: str, setting: tuple[int, int, int]) -> None:
    target = golden_target(base)
    drafter = load_eagle(str(FOLDER / name), target).module
    runs = runs_of(name, setting)
    assert runs
    for run in runs:
        prompt = golden(f"eagle2__{name}")["prompts"][run["prompt"]]["ids"]
        method = Eagle2(target, drafter, Eagle2Settings(*setting))
        new_tokens: list[int] = []
        rounds = replay(target, method, prompt, len(run["rounds"]))
        for expected, (draft, output, verdict) in zip(run["rounds"], rounds, strict=True):
            tree = draft.tree()
            assert target.length == expected["L"]
            assert [tree.token_list[row] for row in verdict.path] == expected["committed"]
            assert verdict.next_token == expected["next_root"]
            new_tokens += expected["committed"]
            if expected["tie_gap"] >= TIE_GAP:
                assert tree.token_list == expected["tokens"]
                assert tree.parent_list == expected["parents"]
                assert tree.scores.tolist() == pytest.approx(expected["score"], abs=1e-4)
                assert output.logits.argmax(-1).tolist() == expected["target_argmax"]
        new_tokens.append(expected["next_root"])
        assert new_tokens[: len(run["output"])] == run["output"]


def test_a_budget_beyond_the_pool_is_clamped_and_said() -> None:
    """The original raises for 16/5/1: a chain of 6 levels has 6 nodes."""
    target = tiny_target()
    method = Eagle2(target, tiny_drafter("eagle2", target), Eagle2Settings(total_tokens=16, depth=5, top_k=1))
    (draft, _, _), *_ = replay(target, method, [1, 2, 3], 1)
    assert draft.tree().parent_list == [-1, 0, 1, 2, 3, 4, 5]
    assert any("7 rows" in notice for notice in method.notices)
    assert method.settings == Eagle2Settings(total_tokens=7, depth=5, top_k=1)


def test_more_children_than_the_drafter_has_tokens_is_clamped_and_said() -> None:
    target = tiny_target(vocab_size=5)
    method = Eagle2(target, tiny_drafter("eagle2", target), Eagle2Settings(total_tokens=60, depth=1, top_k=10))
    (draft, _, _), *_ = replay(target, method, [1, 2], 1)
    assert len(draft.tree()) == 1 + 5 + 25
    assert any("5 tokens" in notice for notice in method.notices)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 9),
    scale=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    shape=st.tuples(st.integers(2, 40), st.integers(0, 4), st.integers(1, 5)),
)
def test_drafts_with_tied_scores_are_the_best_nodes_of_their_pool(
    seed: int, scale: float, shape: tuple[int, int, int]
) -> None:
    """Logits rounded to whole numbers tie everywhere: all alike at scale 0, probabilities near 1 at the largest."""
    target = TIED
    method = Eagle2(target, tiny_drafter("eagle2", target, seed), Eagle2Settings(*shape))
    plain_head = method._head
    method._head = lambda hidden: (plain_head(hidden) * scale).round()
    for draft, _, _ in replay(target, method, [seed % 6, 1, 2], 2):
        considered, tree = draft.considered, draft.tree()  # building it raises where a row has no parent
        assert len(tree) == method.settings.total_tokens
        scores = considered.scores
        best = sorted(scores[1:].tolist(), reverse=True)[: len(tree) - 1]
        assert sorted(scores[draft.kept_rows()[1:]].tolist(), reverse=True) == pytest.approx(best, rel=1e-5)
        for row in range(len(considered)):
            tokens = [considered.token_list[child] for child in considered.children(row)]
            assert len(set(tokens)) == len(tokens)


def test_certain_drafters_still_give_trees() -> None:
    """A drafter whose probabilities round to 1 and 0 ties everywhere along its favourite chain."""
    target = tiny_target()
    drafter = tiny_drafter("eagle2", target)
    method = Eagle2(target, drafter, Eagle2Settings(total_tokens=9, depth=4, top_k=3))
    plain_head = method._head
    method._head = lambda hidden: plain_head(hidden) * 1e4
    for draft, _, _ in replay(target, method, [5, 6, 7], 4):
        tree = draft.tree()  # building it raises where a row has no parent
        assert len(tree) == 9


def test_ranks_come_from_the_drafters_own_order() -> None:
    target = tiny_target()
    method = Eagle2(target, tiny_drafter("eagle2", target), Eagle2Settings(total_tokens=8, depth=1, top_k=4))
    (draft, _, _), *_ = replay(target, method, [5, 6, 7], 1)
    assert draft.rank_of is not None
    first_level = [draft.considered.token_list[row] for row in draft.considered.children(0)]
    assert [draft.rank_of(0, token) for token in first_level] == [0, 1, 2, 3]
    leaf = len(draft.considered) - 1
    assert draft.rank_of(leaf, first_level[0]) is None  # never expanded: the drafter did not look
