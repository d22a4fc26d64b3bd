"""EAGLE-1's static tree against the original implementation's figures."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.checkpoints.eagle import load_eagle
from explorer.config import Sampling
from explorer.methods.base import Draft
from explorer.methods.eagle1 import Eagle1, Eagle1Settings
from explorer.models.eagle_layer import EagleConfig, EagleDrafter
from explorer.sampling import Sampler
from explorer.target import Target
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


def first_draft(method: Eagle1, sampling: Sampling, prompt: tuple[int, ...] = (1, 2)) -> Draft:
    """The first draft of a run, before anything was verified."""
    method.target.start(0)
    output = method.target.prefill(prompt)
    method.start(list(prompt), output, Sampler(sampling))
    return method.draft(int(output.logits.argmax()))


def sampled(**changes: Any) -> tuple[Target, Eagle1]:
    target = tiny_target(**changes)
    return target, Eagle1(target, tiny_drafter("eagle1", target), Eagle1Settings())


def test_at_a_temperature_children_are_drawn_and_come_with_their_distribution() -> None:
    _, method = sampled()
    draft = first_draft(method, Sampling(1.0, seed=2))
    tree, dists = draft.tree(), draft.dists()
    inner = {row for row in range(len(tree)) if tree.children(row)}
    assert len(tree) == 26
    assert set(dists) == inner
    orders = []
    for row, dist in dists.items():
        tokens = [tree.token_list[child] for child in tree.children(row)]
        assert float(dist.sum()) == pytest.approx(1, abs=1e-5)
        assert len(set(tokens)) == len(tokens), "without replacement"
        assert tree.draft_probs[tree.children(row)].tolist() == dist[tokens].tolist()
        orders.append(dist[tokens].tolist() == sorted(dist[tokens].tolist(), reverse=True))
    assert not all(orders), "they are drawn, not ranked"
    again, other = (first_draft(method, Sampling(1.0, seed=seed)).tree().token_list for seed in (2, 3))
    assert again == tree.token_list != other


@pytest.mark.parametrize("acceptance", [None, "rejection"])
def test_at_temperature_zero_the_best_candidates_stay(acceptance: str | None) -> None:
    _, method = sampled()
    greedy, draft = first_draft(method, Sampling()), first_draft(method, Sampling(acceptance=acceptance))
    assert draft.tree().token_list == greedy.tree().token_list
    assert draft.draft_dists is None
    assert draft.dists() == {}


def test_rows_that_find_no_token_are_left_out_with_all_below_them() -> None:
    _, method = sampled()
    draft = first_draft(method, Sampling(1.0, top_k=2))
    tree = draft.tree()
    assert 0 < max(len(tree.children(row)) for row in range(len(tree))) <= 2
    assert len(tree) < 26
    assert all(bool(dist[tree.token_list[c]] > 0) for row, dist in draft.dists().items() for c in tree.children(row))
    assert draft.rank_of is not None
    assert all(draft.rank_of(row, 0) is not None for row in draft.dists())
    chain = first_draft(method, Sampling(1.0, top_k=1)).tree()
    assert [len(chain.children(row)) for row in range(len(chain))] == [1] * (len(chain) - 1) + [0]


def test_a_smaller_draft_vocabulary_draws_only_from_its_own() -> None:
    target = tiny_target()
    torch.manual_seed(0)
    drafter = EagleDrafter(EagleConfig(target.hidden_size, 48, 4, 2, target.vocab_size, draft_vocab_size=20))
    drafter.d2t += 2 * torch.arange(20)  # draft id i is target id 3 i
    drafter.bind(target.embed_tokens.weight, target.lm_head.weight)
    draft = first_draft(Eagle1(target, drafter.requires_grad_(False).eval(), Eagle1Settings()), Sampling(1.0))
    assert draft.draft_dists is not None
    assert draft.draft_dists.shape[1] == target.vocab_size
    assert (draft.draft_dists > 0).any(0).nonzero().flatten().tolist() == [3 * i for i in range(20)]
    assert all(token % 3 == 0 for token in draft.tree().token_list[1:])


def test_a_broken_drafter_still_drafts_something() -> None:
    target, method = sampled()
    for parameter in method.drafter.parameters():
        parameter.fill_(float("nan"))
    draft = first_draft(method, Sampling(0.7))
    assert all(0 <= token < target.vocab_size for token in draft.tree().token_list)
    assert all(float(dist.sum()) == pytest.approx(1, abs=1e-5) for dist in draft.dists().values())
