"""Losslessness computed, not sampled: every branch of a rule on a 5-token vocabulary, composed to its output's law.

Each rule that claims it must give the target's own law to 1e-6; typical acceptance must not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from explorer.config import Sampling
from explorer.sampling import Sampler
from explorer.tree import DRAFT, ROOT, WINDOW, DraftTree
from explorer.verify import Draw, Verdict, verify_greedy, verify_rejection, verify_typical
from tests.support.branches import branches, completed_law, exact_law, largest_difference, random_target

VOCAB = 5
Logits = Callable[[tuple[int, ...]], Tensor]
Result = tuple[Sequence[int], Sequence[Draw]]
SAMPLINGS = {
    "plain": Sampling(1.0),
    "cool": Sampling(0.6),
    "top_p": Sampling(1.2, top_p=0.8),
    "top_k": Sampling(0.9, top_k=3),
    "both": Sampling(1.5, top_p=0.7, top_k=4),
    "greedy": Sampling(acceptance="rejection"),
}


def paths_of(tree: DraftTree) -> list[tuple[int, ...]]:
    return [tuple(tree.token_list[i] for i in tree.path_to(row)[1:]) for row in range(len(tree))]


def target_rows(tree: DraftTree, logits: Logits) -> Tensor:
    """[N, V]: what the target says after each row's path."""
    return torch.stack([logits(path) for path in paths_of(tree)])


def result_of(verdict: Verdict) -> Result:
    return [*verdict.accepted_tokens, verdict.next_token], verdict.draws


def error_of(run: Callable[[Sampler], Result], sampling: Sampling, logits: Logits, length: int) -> float:
    """How far the law of the first ``length`` tokens is from the target's own."""
    sampler = Sampler(sampling)

    def after(prefix: tuple[int, ...]) -> Tensor:
        return sampler.warp(logits(prefix))

    found = completed_law(branches(run, sampling), after, length)
    assert sum(found.values()) == pytest.approx(1, abs=1e-6), "the branches are not all there"
    return largest_difference(found, exact_law(after, length))


def random_tree(seed: int, num_rows: int) -> DraftTree:
    """Distinct siblings in any order, and two window rows that must change nothing."""
    rng = random.Random(seed)
    tokens, parents = [0], [-1]
    while len(tokens) < num_rows:
        parent = rng.randrange(len(tokens))
        free = set(range(VOCAB)) - {tokens[i] for i, p in enumerate(parents) if p == parent}
        if free and len(DraftTree.from_lists(tokens, parents).path_to(parent)) < 4:
            tokens.append(rng.choice(sorted(free)))
            parents.append(parent)
    roles = [ROOT] + [DRAFT] * (num_rows - 1) + [WINDOW] * 2
    return DraftTree.from_lists([*tokens, 1, 2], [*parents, 0, num_rows], roles=roles)


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("seed", range(8))
def test_deterministic_trees_keep_the_targets_law(seed: int, sampling: Sampling) -> None:
    tree, logits = random_tree(seed, num_rows=9), random_target(seed)

    def run(sampler: Sampler) -> Result:
        return result_of(verify_rejection(tree, target_rows(tree, logits), sampler))

    assert error_of(run, sampling, logits, length=3) < 1e-6


SHAPES = {
    "chain": ((-1, 0, 1), 3),
    "two siblings": ((-1, 0, 0), 2),
    "all siblings": ((-1, 0, 0, 0, 0, 0), 1),
    "two levels": ((-1, 0, 0, 1), 2),
    "second branch": ((-1, 0, 0, 2), 2),
}


def sampled_draft(shape: Sequence[int], draft: Logits, sampler: Sampler) -> tuple[DraftTree, dict[int, Tensor]]:
    """Fill a shape level by level with tokens drawn without replacement; rows that find no token are left out."""
    tokens, parents, places = [0], [-1], {0: 0}
    dists = dict[int, Tensor]()
    prefixes: dict[int, tuple[int, ...]] = {0: ()}
    for place in range(len(shape)):
        children = [child for child, parent in enumerate(shape) if parent == place]
        if not children or place not in places:
            continue
        row = places[place]
        dists[row] = sampler.warp(draft(prefixes[place]))
        for child, token in zip(children, sampler.draw_distinct(dists[row], len(children)), strict=False):
            places[child], prefixes[child] = len(tokens), (*prefixes[place], token)
            tokens.append(token)
            parents.append(row)
    return DraftTree.from_lists(tokens, parents), dists


@pytest.mark.parametrize("kind", ["cool", "top_p", "top_k", "both"])
@pytest.mark.parametrize("name", SHAPES)
def test_sampled_drafts_keep_the_targets_law(name: str, kind: str) -> None:
    (shape, length), sampling = SHAPES[name], SAMPLINGS[kind]
    logits, draft = random_target(1, scale=1.0), random_target(2)

    def run(sampler: Sampler) -> Result:
        tree, dists = sampled_draft(shape, draft, sampler)
        return result_of(verify_rejection(tree, target_rows(tree, logits), sampler, dists))

    assert error_of(run, sampling, logits, length) < 1e-6


@pytest.mark.parametrize("scale", [0.0, 1e-4, 40.0])
def test_drafters_that_agree_or_are_certain_keep_it_too(scale: float) -> None:
    """Equal distributions leave (nearly) no residual; a certain one proposes one token only."""
    logits = random_target(3)
    noise = random_target(4)

    def draft(prefix: tuple[int, ...]) -> Tensor:
        return logits(prefix) + scale * noise(prefix)

    def run(sampler: Sampler) -> Result:
        tree, dists = sampled_draft((-1, 0, 0), draft, sampler)
        return result_of(verify_rejection(tree, target_rows(tree, logits), sampler, dists))

    assert error_of(run, Sampling(0.8), logits, length=2) < 1e-6


def test_sampled_and_deterministic_rows_mix() -> None:
    logits, draft = random_target(5), random_target(6)

    def run(sampler: Sampler) -> Result:
        dist = sampler.warp(draft(()))
        first, second = sampler.draw_distinct(dist, 2)
        tree = DraftTree.from_lists([0, first, second, 3, 1], [-1, 0, 0, 1, 1])
        return result_of(verify_rejection(tree, target_rows(tree, logits), sampler, {0: dist}))

    assert error_of(run, Sampling(1.0), logits, length=3) < 1e-6


def test_greedy_keeps_the_greedy_law() -> None:
    for seed in range(20):
        tree, logits = random_tree(seed, num_rows=9), random_target(seed)

        def run(_: Sampler, tree: DraftTree = tree, logits: Logits = logits) -> Result:
            verdict = verify_greedy(tree, target_rows(tree, logits))
            return result_of(verdict)[0], []  # greedy draws nothing

        assert error_of(run, Sampling(), logits, length=3) == 0


def test_typical_acceptance_fails_this_test() -> None:
    for seed in range(8):
        tree, logits = random_tree(seed, num_rows=9), random_target(seed, scale=0.7)

        def run(sampler: Sampler, tree: DraftTree = tree, logits: Logits = logits) -> Result:
            verdict = verify_typical(tree, target_rows(tree, logits), sampler, 0.09, 0.3)
            return result_of(verdict)[0], []

        assert error_of(run, Sampling(1.0, acceptance="typical"), logits, length=3) > 0.01


@pytest.mark.parametrize("mistake", ["raw bonus", "unwarped draft"])
def test_the_mistakes_of_public_copies_fail_this_test(mistake: str) -> None:
    """The proof has teeth: a bonus from the raw logits shows, and so does a draft distribution before its filters."""
    logits, draft, plain = random_target(7, scale=0.8), random_target(8, scale=0.8), Sampler(Sampling(1.0))

    def run(sampler: Sampler) -> Result:
        tree, dists = sampled_draft((-1, 0, 0), draft, sampler)
        if mistake == "unwarped draft":
            dists = {row: plain.warp(draft(())) for row in dists}
        verdict = verify_rejection(tree, target_rows(tree, logits), sampler, dists)
        tokens, draws = result_of(verdict)
        if mistake == "raw bonus" and verdict.next_kind == "bonus":
            tokens = [*tokens[:-1], sampler.draw(plain.warp(logits(tuple(tokens[:-1]))))]
        return tokens, draws

    assert error_of(run, Sampling(0.6, top_p=0.8), logits, length=2) > 0.01
