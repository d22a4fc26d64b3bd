"""EAGLE-1's static tree against the original implementation's figures."""

from __future__ import annotations

from explorer.checkpoints.eagle import load_eagle
from explorer.methods.eagle1 import Eagle1, Eagle1Settings
from tests.support.goldens import FOLDER, assert_static_run, golden, golden_target, replay
from tests.support.tiny import tiny_drafter, tiny_target


def test_every_round_equals_the_original() -> None:
    target = golden_target("base_a")
    drafter = load_eagle(str(FOLDER / "eagle_bias"), target).module
    figures = golden("eagle1__eagle_bias")
    for run in figures["runs"]:
        method = Eagle1(target, drafter, Eagle1Settings())
        assert_static_run(target, method, figures, run)


def test_only_nodes_with_children_are_forwarded() -> None:
    """Five passes: the new true features, then one for each level that has children."""
    target = tiny_target()
    method = Eagle1(target, tiny_drafter("eagle1", target), Eagle1Settings())
    for draft, _, _ in replay(target, method, [1, 2, 3], 3):
        assert len(draft.passes_ms) == 5
        assert method._cache.length == target.length  # predicted features were dropped


def test_ranks_beyond_the_drafters_vocabulary_are_left_out_and_said() -> None:
    target = tiny_target(vocab_size=3)
    method = Eagle1(target, tiny_drafter("eagle1", target), Eagle1Settings())
    (draft, _, _), *_ = replay(target, method, [1, 2], 1)
    assert len(draft.tree().children(0)) == 3
    assert any("3 tokens" in notice for notice in method.notices)


def test_probabilities_are_the_drafters_own() -> None:
    target = tiny_target()
    method = Eagle1(target, tiny_drafter("eagle1", target), Eagle1Settings())
    (draft, _, _), *_ = replay(target, method, [1, 2], 1)
    tree = draft.tree()
    for row in range(len(tree)):
        probs = [float(tree.draft_probs[child]) for child in tree.children(row)]
        assert probs == sorted(probs, reverse=True)
        assert sum(probs) < 1 + 1e-5
        assert all(draft.rank_of(row, tree.token_list[c]) == i for i, c in enumerate(tree.children(row)))  # type: ignore[misc]
