"""A draft model's chain against its own plain decoding; its cache against a fresh pass over the text."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from explorer.checkpoints.draft_model import load_draft_model
from explorer.config import Sampling
from explorer.methods.base import Draft
from explorer.methods.draft_model import DraftModel, DraftModelSettings
from explorer.sampling import Sampler
from explorer.target import Target
from tests.support.goldens import FOLDER, golden, golden_target, replay
from tests.support.tiny import VOCAB, greedy, tiny_target

PROMPT = [3, 1, 4, 1, 5]


@cache
def related() -> tuple[Target, Target]:
    """(target, draft model) that were trained on the same text and share a tokenizer, but no weight."""
    target = golden_target("base_a")
    found = load_draft_model(str(FOLDER / "medusa_c"), target)
    return target, Target(found.model, None, found.record.name, frozenset(), target.backend)


def sampled(method: DraftModel, prompt: list[int], sampling: Sampling, root: int) -> Draft:
    method.target.start(0)
    method.start(prompt, method.target.prefill(prompt), Sampler(sampling))
    return method.draft(root)


@pytest.mark.parametrize("gamma", [1, 2, 6])
def test_the_chain_is_the_draft_models_own_greedy_text(gamma: int) -> None:
    target, drafter, plain = tiny_target(), tiny_target(1), tiny_target(1)
    text = list(PROMPT)
    method = DraftModel(target, drafter, DraftModelSettings(gamma))
    for draft, _, verdict in replay(target, method, PROMPT, 8):
        tree = draft.tree()
        assert tree.parent_list == list(range(-1, gamma))
        assert tree.token_list[1:] == greedy(plain, [*text, tree.token_list[0]], gamma)
        assert len(draft.passes_ms) == gamma
        assert draft.draft_dists is None
        text += [tree.token_list[row] for row in verdict.path]


def test_the_cache_equals_a_fresh_pass_whatever_was_accepted() -> None:
    target, drafter = related()
    prompt = golden("hf_greedy__base_a")["prompts"]["a02"]["ids"]
    text, accepted = list(prompt), set[int]()
    fresh = Target(load_draft_model(str(FOLDER / "medusa_c"), target).model, None, "fresh", frozenset(), "naive")
    for draft, _, verdict in replay(target, DraftModel(target, drafter, DraftModelSettings(3)), prompt, 30):
        held = drafter.cache.committed().clone()
        read = [*text, *draft.tree().token_list[:-1]]  # every guess but the last
        fresh.start(0)
        fresh.prefill(read)
        torch.testing.assert_close(held, fresh.cache.committed(), atol=1e-4, rtol=0)
        accepted.add(len(verdict.path) - 1)
        text += [draft.tree().token_list[row] for row in verdict.path]
    assert {0, 3} <= accepted  # nothing, and more than it had read


def test_a_related_model_saves_passes_and_changes_nothing() -> None:
    target, drafter = related()
    figures = golden("hf_greedy__base_a")
    run = next(run for run in figures["runs"] if (run["prompt"], run["mode"]) == ("a08", "noeos"))
    output: list[int] = []
    prompt = figures["prompts"]["a08"]["ids"]
    for draft, _, verdict in replay(target, DraftModel(target, drafter, DraftModelSettings(5)), prompt, 30):
        output += [draft.tree().token_list[row] for row in verdict.path]
    assert output == run["output"][: len(output)]
    assert len(output) > 45


def test_the_targets_own_copy_is_always_right() -> None:
    target, unread = tiny_target(), list[int]()
    method = DraftModel(target, tiny_target(), DraftModelSettings(4))
    for draft, _, verdict in replay(target, method, PROMPT, 6):
        assert verdict.path == (0, 1, 2, 3, 4)
        assert method._unread == [*unread, draft.tree().token_list[0]]
        unread = [verdict.accepted_tokens[-1]]  # its last guess it has never read


def test_probabilities_and_ranks_are_the_draft_models() -> None:
    target, plain = tiny_target(), tiny_target(1)
    (draft, _, _), *_ = replay(target, DraftModel(target, tiny_target(1), DraftModelSettings(3)), PROMPT, 1)
    tree = draft.tree()
    assert draft.rank_of is not None
    for row in range(3):
        plain.start(0)
        logits = plain.prefill([*PROMPT, *tree.token_list[: row + 1]]).logits[0]
        token = tree.token_list[row + 1]
        assert float(tree.draft_probs[row + 1]) == pytest.approx(float(logits.softmax(-1)[token]), abs=1e-5)
        assert draft.rank_of(row, token) == 0
        second = int(logits.topk(2).indices[1])
        assert draft.rank_of(row, second) == 1
    assert draft.rank_of(3, 0) is None  # the last guess was not read
    assert draft.read_extra is not None
    tops = draft.read_extra()["draft_tops"]
    assert [top[0][0] for top in tops] == tree.token_list[1:]
    assert [top[0][1] for top in tops] == pytest.approx(tree.draft_probs[1:].tolist(), abs=1e-6)
    assert all([prob for _, prob in top] == sorted((prob for _, prob in top), reverse=True) for top in tops)


@pytest.mark.parametrize("sampling", [Sampling(0.8, seed=3), Sampling(1.5, top_p=0.7, top_k=9, seed=4)], ids=str)
def test_sampled_guesses_come_with_the_distributions_they_were_drawn_from(sampling: Sampling) -> None:
    target, drafter, plain = tiny_target(), tiny_target(1), tiny_target(1)
    method, warp = DraftModel(target, drafter, DraftModelSettings(4)), Sampler(sampling).warp
    seen = set()
    for seed in range(6):
        changed = Sampling(sampling.temperature, sampling.top_p, sampling.top_k, seed)
        draft = sampled(method, PROMPT, changed, 9)
        again = sampled(method, PROMPT, changed, 9)
        assert draft.tree().token_list == again.tree().token_list
        seen.add(tuple(draft.tree().token_list))
        assert draft.draft_dists is not None
        assert draft.draft_dists.shape == (4, VOCAB)
        assert list(draft.dist_rows) == [0, 1, 2, 3]
        tree = draft.tree()
        for row, dist in enumerate(draft.draft_dists):
            plain.start(0)
            expected = warp(plain.prefill([*PROMPT, *tree.token_list[: row + 1]]).logits[0])
            torch.testing.assert_close(dist, expected, atol=1e-5, rtol=0)
            assert float(tree.draft_probs[row + 1]) == pytest.approx(float(dist[tree.token_list[row + 1]]), abs=1e-6)
        assert draft.read_extra is not None
        tops = draft.read_extra()["draft_tops"]
        assert [prob for _, prob in tops[0]] == pytest.approx(draft.draft_dists[0].topk(8).values.tolist())
    assert len(seen) > 1


@pytest.mark.parametrize("num_ids", [40, 80])
def test_a_vocabulary_of_another_length_is_cut_or_padded(num_ids: int) -> None:
    """Padding ids are never drafted, and one that the target writes is no reason to fail."""
    target, prompt = tiny_target(), [60, 1, 55, 2]
    method = DraftModel(target, tiny_target(1, vocab_size=num_ids), DraftModelSettings(3))
    expected, output = greedy(target, prompt, 12), list[int]()
    for draft, _, verdict in replay(target, method, prompt, 12):
        assert max(draft.tree().token_list[1:]) < min(num_ids, VOCAB)
        output += [draft.tree().token_list[row] for row in verdict.path]
        assert draft.rank_of is not None
        assert (draft.rank_of(0, 60) is None) == (num_ids == 40)
    assert output[:12] == expected
    dists = sampled(method, prompt, Sampling(1.0), 60).draft_dists
    assert dists is not None
    assert dists.shape == (3, VOCAB)
    assert torch.allclose(dists.sum(dim=-1), torch.ones(3))
    assert not dists[:, min(num_ids, VOCAB) :].any()


@pytest.mark.parametrize("limit", [3, 8, 14])
def test_beyond_its_context_nothing_is_drafted(limit: int) -> None:
    target, drafter = tiny_target(), tiny_target(1, max_position_embeddings=limit)
    method = DraftModel(target, drafter, DraftModelSettings(4))
    assert any(f"reads {limit} tokens, the target 128" in notice for notice in method.notices)
    expected, output = greedy(target, PROMPT, 14), list[int]()
    for draft, _, verdict in replay(target, method, PROMPT, 14):
        assert len(draft.tree()) - 1 == max(0, min(4, limit - target.length))
        assert drafter.length <= limit
        assert draft.plain_reason == ("fallback" if target.length >= limit else None)
        output += [draft.tree().token_list[row] for row in verdict.path]
    assert output[:14] == expected


def test_no_notice_where_the_contexts_are_alike() -> None:
    assert DraftModel(tiny_target(), tiny_target(1), DraftModelSettings()).notices == []
