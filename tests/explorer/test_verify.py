"""The acceptance rules: greedy against its plainest reading, rejection and typical test by test.

That the law of the output is right is computed in test_lossless.py.
"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import one_hot

from explorer.config import Sampling
from explorer.sampling import Sampler
from explorer.tree import DRAFT, ROOT, WINDOW, DraftTree
from explorer.verify import Verdict, finite_choices, is_finite, verify_greedy, verify_rejection, verify_typical

VOCAB = 7


@st.composite
def cases(draw: st.DrawFn) -> tuple[DraftTree, Tensor]:
    """Random trees whose siblings are distinct tokens, with the target's choice after each row."""
    num_rows = draw(st.integers(1, 20))
    tokens, parents = [0], [-1]
    for row in range(1, num_rows):
        parent = draw(st.integers(0, row - 1))
        taken = {tokens[i] for i, p in enumerate(parents) if p == parent}
        free = sorted(set(range(VOCAB)) - taken)
        if free:
            tokens.append(draw(st.sampled_from(free)))
            parents.append(parent)
        else:
            tokens.append(0)
            parents.append(len(tokens) - 2)
    choices = torch.tensor([draw(st.integers(0, VOCAB - 1)) for _ in tokens])
    return DraftTree.from_lists(tokens, parents), one_hot(choices, VOCAB).float()


@given(cases())
def test_path_is_the_argmax_walk(case: tuple[DraftTree, Tensor]) -> None:
    tree, logits = case
    choices = logits.argmax(-1).tolist()
    verdict = verify_greedy(tree, logits)
    path = [0]
    while True:
        following = [c for c in tree.children(path[-1]) if tree.token_list[c] == choices[path[-1]]]
        if not following:
            break
        path.append(following[0])
    assert list(verdict.path) == path
    assert verdict.next_token == choices[path[-1]]
    assert list(verdict.accepted_tokens) == [tree.token_list[row] for row in path[1:]]
    assert verdict.next_kind == ("recovered" if tree.children(path[-1]) else "bonus")


@given(cases())
def test_outcomes_follow_from_the_path(case: tuple[DraftTree, Tensor]) -> None:
    tree, logits = case
    verdict = verify_greedy(tree, logits)
    tested = [draw.row for draw in verdict.draws]
    for row in range(1, len(tree)):
        expected = "unreachable"
        if row in verdict.path:
            expected = "accepted"
        elif tree.parent_list[row] in verdict.path:
            expected = "rejected"  # greedy compares every child with the one argmax
        assert verdict.outcomes[row] == expected
        assert (row in tested) == (expected in ("accepted", "rejected"))
        assert math.isnan(verdict.accept_probs[row]) == (row not in tested)


def test_children_are_tested_in_row_order() -> None:
    tree = DraftTree.from_lists([9, 1, 2, 3], [-1, 0, 0, 0])
    verdict = verify_greedy(tree, one_hot(torch.tensor([2, 0, 5, 0]), VOCAB).float())
    assert [(d.row, d.accepted, d.prob) for d in verdict.draws] == [(1, False, 0.0), (2, True, 1.0), (3, False, 0.0)]
    assert verdict.next_token == 5


def test_window_rows_are_never_accepted() -> None:
    tree = DraftTree.from_lists([9, 1, 1], [-1, 0, 0], roles=[ROOT, WINDOW, DRAFT])
    verdict = verify_greedy(tree, one_hot(torch.tensor([1, 0, 0]), VOCAB).float())
    assert verdict.path == (0, 2)
    assert verdict.outcomes == ("root", "window", "accepted")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)  # read apart, and in one copy
def test_non_finite_logits_are_noticed(dtype: torch.dtype) -> None:
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert is_finite(logits)
    assert finite_choices(logits) == logits.argmax(dim=-1).tolist()
    for bad in (float("nan"), float("inf"), float("-inf")):
        broken = logits.clone()
        broken[1, 2] = bad
        assert not is_finite(broken)
        assert finite_choices(broken) is None


class Fixed(Sampler):
    """A sampler whose uniforms are given; temperature 1 unless said otherwise."""

    def __init__(self, *uniforms: float, sampling: Sampling = Sampling(1.0)) -> None:  # noqa: B008  frozen
        super().__init__(sampling)
        self.left = list(uniforms)

    def uniform(self) -> float:
        return self.left.pop(0)


def logs(*rows: list[float]) -> Tensor:
    """Logits whose softmax is these probabilities."""
    return torch.tensor(rows).log()


THREE_CHILDREN = DraftTree.from_lists([9, 0, 1, 2, 3], [-1, 0, 0, 0, 2])


def reject(tree: DraftTree, logits: Tensor, sampler: Sampler, **dists: object) -> Verdict:
    verdict = verify_rejection(tree, logits, sampler, **dists)  # type: ignore[arg-type]
    assert all(0 <= draw.prob <= 1 for draw in verdict.draws)
    return verdict


def test_a_rejected_child_is_taken_out_and_the_rest_renormalised() -> None:
    logits = logs([0.5, 0.2, 0.1, 0.2], *[[0.25] * 4] * 4)
    sampler = Fixed(0.51, 0.39, 0.0, 0.4)
    verdict = reject(THREE_CHILDREN, logits, sampler)
    assert verdict.path == (0, 2, 4)
    assert verdict.outcomes == ("root", "rejected", "accepted", "untried", "accepted")
    assert [(d.row, d.uniform, d.accepted) for d in verdict.draws] == [
        (1, 0.51, False),
        (2, 0.39, True),
        (4, 0.0, True),
    ]
    assert [d.prob for d in verdict.draws] == pytest.approx([0.5, 0.4, 0.25])
    first, *others = verdict.draws
    assert first.residual is not None
    assert first.residual.mass == pytest.approx(0.5)
    assert first.residual.distribution().tolist() == pytest.approx([0, 0.4, 0.2, 0.4])
    assert [d.residual for d in others] == [None, None], "only a rejection leaves a residual"
    assert verdict.accept_probs[1:3] == pytest.approx([0.5, 0.4])
    assert math.isnan(verdict.accept_probs[3])
    assert (verdict.next_token, verdict.next_kind) == (1, "bonus")
    assert not sampler.left


def test_after_the_last_rejection_the_next_token_comes_from_the_residual() -> None:
    logits = logs([0.5, 0.2, 0.1, 0.2], *[[0.25] * 4] * 4)
    verdict = reject(THREE_CHILDREN, logits, Fixed(0.99, 0.99, 0.99, 0.0))
    assert verdict.path == (0,)
    assert [d.prob for d in verdict.draws] == pytest.approx([0.5, 0.4, 1 / 3])
    assert (verdict.next_token, verdict.next_kind) == (3, "recovered")
    assert verdict.outcomes[4] == "unreachable"


def test_a_sampled_child_is_accepted_by_the_ratio_and_leaves_the_positive_difference() -> None:
    chain = DraftTree.from_lists([9, 0], [-1, 0])
    logits, draft = logs([0.3, 0.3, 0.4], [0.2, 0.3, 0.5]), torch.tensor([0.6, 0.4, 0.0])
    accepted = reject(chain, logits, Fixed(0.49, 0.1), dists={0: draft})
    assert accepted.draws[0].prob == pytest.approx(0.5)
    assert (accepted.path, accepted.next_token, accepted.next_kind) == ((0, 1), 0, "bonus")
    rejected = reject(chain, logits, Fixed(0.51, 0.9), dists={0: draft})
    assert rejected.draws[0].residual is not None
    assert rejected.draws[0].residual.mass == pytest.approx(0.4)
    assert rejected.draws[0].residual.distribution().tolist() == pytest.approx([0, 0, 1])
    assert (rejected.path, rejected.next_token, rejected.next_kind) == ((0,), 2, "recovered")
    certain = reject(chain, logits.flip(-1), Fixed(1 - 2**-53, 0.0), dists={0: torch.tensor([0.3, 0.5, 0.2])})
    assert certain.draws[0].prob == 1.0, "min(1, 0.4 / 0.3)"


def test_a_second_sampled_sibling_meets_what_the_first_left_of_both_distributions() -> None:
    siblings = DraftTree.from_lists([9, 0, 1], [-1, 0, 0])
    target, draft = [0.1, 0.3, 0.6], torch.tensor([0.5, 0.3, 0.2])
    verdict = reject(siblings, logs(target, *[[1.0, 0, 0]] * 2), Fixed(0.9, 0.9, 0.0), dists={0: draft})
    # after the first: p = (0, 0, 0.4) / 0.4, q = (0, 0.6, 0.4): token 1 has no chance, the residual is token 2
    assert [d.prob for d in verdict.draws] == pytest.approx([0.2, 0.0])
    assert [d.residual.mass for d in verdict.draws if d.residual] == pytest.approx([0.4, 0.6])
    assert verdict.next_token == 2


def test_a_child_that_takes_all_probability_is_accepted_whatever_rounding_says() -> None:
    chain = DraftTree.from_lists([9, 1], [-1, 0])
    row = torch.tensor([-200.0, 0.0, -200.0])  # the softmax rounds to one-hot
    last = 1 - 2**-53
    for dists in ({}, {0: torch.tensor([0.0, 1.0, 0.0])}):
        verdict = reject(chain, torch.stack([row, row]), Fixed(last, last), dists=dists)
        assert (verdict.path, verdict.next_token) == ((0, 1), 1)
        assert verdict.draws[0].prob == 1.0


def test_what_is_left_after_nearly_everything_is_no_rounding_noise() -> None:
    """1 - (0.7 + 0.3 - 1e-30) would be 0 or a rounding error; the sum of what is left is 1e-30."""
    tree = DraftTree.from_lists([9, 0, 1], [-1, 0, 0])
    row = torch.tensor([0.7, 0.3, 1e-30, 0.0]).log()
    verdict = reject(tree, row.repeat(3, 1), Fixed(0.9, 1 - 2**-53, 0.5))
    assert verdict.path == (0, 2), "the second child has all but 1e-30 / 0.3 of what is left"
    assert verdict.draws[1].prob == 1.0
    narrow = reject(DraftTree.from_lists([9, 0], [-1, 0]), row.repeat(2, 1), Fixed(0.8, 0.5))
    assert narrow.draws[0].residual is not None
    assert narrow.draws[0].residual.mass == pytest.approx(0.3)


def test_equal_distributions_leave_nothing_to_reject() -> None:
    probs = torch.rand(50, generator=torch.Generator().manual_seed(0)).softmax(-1)
    for token in range(50):
        chain = DraftTree.from_lists([9, token], [-1, 0])
        verdict = reject(chain, probs.log().repeat(2, 1), Fixed(0.99999, 0.5), dists={0: probs})
        assert verdict.path == (0, 1)


def test_an_impossible_child_is_never_accepted() -> None:
    tree = DraftTree.from_lists([9, 0, 0, 1], [-1, 0, 0, 0])  # a repeated sibling has no mass left either
    verdict = reject(tree, logs([0.5, 0.0, 0.5], *[[1.0, 0, 0]] * 3), Fixed(0.7, 0.0, 0.0, 0.0))
    assert [d.prob for d in verdict.draws] == pytest.approx([0.5, 0.0, 0.0])
    assert (verdict.path, verdict.next_token) == ((0,), 2)


def test_a_child_outside_its_own_distribution_is_a_bug_of_the_method() -> None:
    chain = DraftTree.from_lists([9, 1], [-1, 0])
    with pytest.raises(ValueError, match="token 1 cannot have been drawn"):
        reject(chain, torch.zeros(2, 3), Fixed(0.5, 0.5), dists={0: torch.tensor([0.5, 0.0, 0.5])})


def test_the_bonus_comes_from_the_warped_distribution() -> None:
    logits = torch.tensor([[2.0, 1.9, 1.8, -9.0]])
    sampling = Sampling(2.0, top_k=2)
    drawn = {reject(DraftTree.root_only(9), logits, Fixed(u, sampling=sampling)).next_token for u in (0.0, 0.3, 0.999)}
    assert drawn == {0, 1}


def test_half_precision_logits_are_judged_in_full() -> None:
    logits = logs([0.5, 0.2, 0.1, 0.2], *[[0.25] * 4] * 4)
    verdict = reject(THREE_CHILDREN, logits.bfloat16(), Fixed(0.99, 0.0, 0.0, 0.0))
    assert verdict.draws[0].residual is not None
    left = verdict.draws[0].residual.distribution()
    assert left.dtype == torch.float64
    assert float(left.sum()) == pytest.approx(1, abs=1e-12)


@given(cases())
def test_rejection_at_temperature_zero_is_greedy(case: tuple[DraftTree, Tensor]) -> None:
    tree, logits = case
    greedy = verify_greedy(tree, logits)
    verdict = verify_rejection(tree, logits, Sampler(Sampling(acceptance="rejection")))
    assert (verdict.path, verdict.next_token, verdict.next_kind) == (greedy.path, greedy.next_token, greedy.next_kind)


def typical(tree: DraftTree, logits: Tensor, threshold: float = 0.09, alpha: float = 0.3) -> Verdict:
    return verify_typical(tree, logits, Sampler(Sampling(1.0, acceptance="typical")), threshold, alpha)


def test_typical_takes_the_longest_path_of_plausible_rows() -> None:
    # root -> 1 (passes, likely), 2 (passes, less likely) -> 4 (passes), 3 (fails) -> 5
    tree = DraftTree.from_lists([9, 0, 1, 2, 0, 0], [-1, 0, 0, 0, 2, 3])
    logits = logs([0.6, 0.3, 0.02, 0.08], *[[0.7, 0.1, 0.1, 0.1]] * 5)
    verdict = typical(tree, logits)
    assert verdict.path == (0, 2, 4)
    assert verdict.outcomes == ("root", "untried", "accepted", "rejected", "accepted", "unreachable")
    assert [d.row for d in verdict.draws] == [1, 2, 3, 4], "a row below one that failed is not tested"
    assert verdict.accept_probs[1:5] == (1.0, 1.0, 0.0, 1.0)
    entropy = -sum(p * math.log(p + 1e-5) for p in (0.6, 0.3, 0.02, 0.08))
    assert verdict.draws[0].threshold == pytest.approx(min(0.09, 0.3 * math.exp(-entropy)), rel=1e-5)
    assert verdict.draws[0].prob == pytest.approx(0.6)
    assert all(d.uniform is None for d in verdict.draws)
    assert (verdict.next_token, verdict.next_kind) == (0, "bonus")


def test_typical_prefers_the_likelier_of_two_equally_long_paths_then_the_first() -> None:
    tree = DraftTree.from_lists([9, 0, 1], [-1, 0, 0])
    assert typical(tree, logs([0.4, 0.6], [0.5, 0.5], [0.5, 0.5])).path == (0, 2)
    assert typical(tree, logs([0.5, 0.5], [0.5, 0.5], [0.5, 0.5])).path == (0, 1)


def test_typical_thresholds_are_settings() -> None:
    tree = DraftTree.from_lists([9, 1], [-1, 0])
    logits = logs([0.9, 0.1], [0.5, 0.5])
    assert typical(tree, logits).path == (0, 1)
    assert typical(tree, logits, threshold=0.11, alpha=1.0).path == (0,)
    assert typical(tree, logits, threshold=0.11, alpha=0.05).path == (0, 1)


def test_typical_after_a_failure_takes_the_argmax() -> None:
    tree = DraftTree.from_lists([9, 1], [-1, 0])
    verdict = typical(tree, logs([0.99, 0.01], [0.5, 0.5]))
    assert (verdict.path, verdict.next_token, verdict.next_kind) == ((0,), 0, "recovered")
