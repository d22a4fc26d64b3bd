"""Acceptance rules: the drafted rows and the target's logits in, a Verdict out.

Every rule walks from the root: it tests the children of the current row in row order and descends into the one it
accepts. Where none is accepted, or the walk ends at a leaf, the target's own token follows. The rules keep no state;
what is random comes from the sampler they are given. Probabilities are float64 on the CPU from here on: a residual is
a difference of nearly equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from explorer.sampling import Sampler, best_tokens
from explorer.tree import DRAFT, WINDOW, DraftTree

Outcome = Literal["root", "accepted", "rejected", "untried", "unreachable", "window"]
NextKind = Literal["bonus", "recovered"]


@dataclass(frozen=True, eq=False)
class Residual:
    """What a rejection leaves of the target's distribution: ``weights`` [V] float64 without the tokens ``taken``.

    total: the sum of what is left. mass: its share of what the round began with, the probability that it rejects.
    """

    weights: Tensor
    taken: tuple[int, ...]
    total: float
    mass: float

    def distribution(self) -> Tensor:
        """[V] float64, summing to 1."""
        left = self.weights / self.total
        left[list(self.taken)] = 0
        return left


@dataclass(frozen=True)
class Draw:
    """One acceptance test: ``prob`` is what the rule really used, ``uniform`` None where nothing was drawn.

    residual: after a rejection by chance, what the next sibling, or at last the target's own token, is drawn from.
    """

    row: int
    uniform: float | None
    prob: float
    accepted: bool
    threshold: float | None = None
    residual: Residual | None = None


@dataclass(frozen=True)
class Verdict:
    """What became of each row: ``path`` holds the accepted rows from the root on, ``next_token`` the target's own.

    accepted_tokens: the tokens of ``path`` below the root.
    outcomes and accept_probs have one entry a row (nan if never tested), draws one a test. ``next_kind`` is
    "recovered" where the last path row had drafted children (all failed), else "bonus".
    """

    path: tuple[int, ...]
    accepted_tokens: tuple[int, ...]
    outcomes: tuple[Outcome, ...]
    accept_probs: tuple[float, ...]
    draws: tuple[Draw, ...]
    next_token: int
    next_kind: NextKind


def verify_greedy(tree: DraftTree, logits: Tensor, choices: list[int] | None = None) -> Verdict:
    """Accept a child if and only if it is the target's argmax at its parent: equal to greedy decoding, token for token.

    logits: [N, V]. choices: ``best_tokens`` of them, where the caller has it. All children of an accepted row are
    tested (they are compared with one argmax). Siblings are distinct tokens; should two be equal, the first is taken.
    Medusa, arXiv 2401.10774, section 2.3 at temperature 0; EAGLE eagle/model/utils.py evaluate_posterior, greedy
    branch.
    """
    choices = best_tokens(logits) if choices is None else choices
    tokens = tree.token_list
    path, draws = [0], list[Draw]()
    while True:
        tested = _drafted_children(tree, path[-1])
        wanted = choices[path[-1]]
        accepted = next((row for row in tested if tokens[row] == wanted), None)
        draws += [Draw(row, None, float(row == accepted), row == accepted) for row in tested]
        if accepted is None:
            break
        path.append(accepted)
    return _verdict(tree, path, draws, choices[path[-1]])


def verify_rejection(
    tree: DraftTree, logits: Tensor, sampler: Sampler, dists: Mapping[int, Tensor] | None = None
) -> Verdict:
    """Rejection sampling: the tokens are distributed as the target's own samples, whatever was drafted.

    With p the target's warped distribution after a row and q what a child x was drawn from, x is accepted with
    probability min(1, p(x) / q(x)); a rejection leaves p := max(0, p - q), divided by its sum, and q := q without x,
    divided by its sum, for the next sibling. Where no child is accepted the next token is drawn from the p that is
    left, after a leaf from p itself. logits: [N, V]. dists: row -> q [V] of its children, which were drawn without
    replacement in row order. A row that is not in it has deterministic children: each q is all on its child, so that
    x is accepted with probability p(x) and a rejection takes x out of p.

    Chains (one child a row): speculative sampling, arXiv 2211.17192, algorithm 1, and arXiv 2302.01318. Sampled
    siblings: multi-round, EAGLE branch v1 eagle/model/utils.py evaluate_posterior; recursive rejection sampling,
    arXiv 2402.14160. Deterministic siblings: EAGLE main, same place; SpecInfer, arXiv 2305.09781, with q = 1.
    """
    tokens = tree.token_list
    path, draws = [0], list[Draw]()
    while True:
        here = path[-1]
        target, draft = _normalised(sampler.warp(logits[here])), None if dists is None else dists.get(here)
        children = _drafted_children(tree, here)
        drafted = [tokens[row] for row in children]
        rounds = _sampled_rounds(target, draft, drafted) if draft is not None else _point_rounds(target, drafted)
        accepted, left = None, Residual(target, (), 1.0, 1.0)
        for row, (prob, rest) in zip(children, rounds, strict=False):  # the last round need not be finished
            uniform = sampler.uniform()
            if uniform < prob:
                accepted = row
                draws.append(Draw(row, uniform, prob, True))
                break
            left = rest
            draws.append(Draw(row, uniform, prob, False, residual=rest))
        if accepted is None:
            return _verdict(tree, path, draws, sampler.draw(left.distribution()))
        path.append(accepted)


def verify_typical(tree: DraftTree, logits: Tensor, sampler: Sampler, threshold: float, alpha: float) -> Verdict:
    """Typical acceptance: takes what the target finds plausible. Not distribution-preserving.

    With p the target's warped distribution after a row and H its entropy in nats, a child x passes if
    p(x) > min(threshold, alpha * exp(-H)). Of the paths whose rows all pass the longest is taken, among equals the
    one with the larger product of p, then the first. Nothing is drawn: the next token is the argmax. logits: [N, V].

    Medusa, arXiv 2401.10774, section 2.3.1, and medusa/model/utils.py evaluate_posterior as its generation loop calls
    it (``fast``; threshold 0.09, alpha 0.3). Rows that pass off the chosen path have an ``accept_prob`` of 1.
    """
    tokens, roles = tree.token_list, tree.roles.tolist()
    passing = {0: (0, 0.0)}  # row -> (depth, sum of log p) for rows with nothing but passing rows above
    after: dict[int, tuple[Tensor, float]] = {}  # row -> (p, its threshold)
    draws = list[Draw]()
    for row, parent in enumerate(tree.parent_list):
        if row == 0 or roles[row] != DRAFT or parent not in passing:
            continue
        if parent not in after:
            probs = sampler.warp(logits[parent])
            entropy = -(probs * (probs + 1e-5).log()).sum()
            after[parent] = (probs, min(threshold, alpha * float(torch.exp(-entropy))))
        probs, least = after[parent]
        prob = float(probs[tokens[row]])
        draws.append(Draw(row, None, prob, prob > least, threshold=least))
        if prob > least:
            depth, likelihood = passing[parent]
            passing[row] = (depth + 1, likelihood + math.log(prob))
    best = max(passing, key=lambda row: (*passing[row], -row))
    return _verdict(tree, tree.path_to(best), draws, int(logits[best].argmax()))


def is_finite(logits: Tensor) -> bool:
    """False where a nan or an infinity would make every verdict meaningless."""
    return bool(torch.isfinite(logits.sum(dim=-1)).all())


def finite_choices(logits: Tensor) -> list[int] | None:
    """``best_tokens`` of [N, V], None where a number is not finite: a GPU sends both in one small copy."""
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        return best_tokens(logits) if is_finite(logits) else None
    is_sound = torch.isfinite(logits.sum(dim=-1)).all()
    *choices, sound = torch.cat([logits.argmax(dim=-1), is_sound[None].long()]).tolist()
    return choices if sound else None


def _point_rounds(target: Tensor, tokens: Sequence[int]) -> Iterator[tuple[float, Residual]]:
    """(acceptance probability, what a rejection leaves) of each deterministic child, given those before it failed.

    Where a rejection would leave nothing it has no probability, whatever rounding says: the child is accepted. What
    is left is a sum of its parts and never 1 minus the rest, which would be noise where the rest is nearly all.
    """
    others = target.clone()
    others[list(tokens)] = 0
    probs = [float(target[token]) if token not in tokens[:i] else 0.0 for i, token in enumerate(tokens)]
    totals = [float(others.sum())]
    for prob in reversed(probs):
        totals.append(totals[-1] + prob)
    before = totals.pop()
    for i, prob in enumerate(probs):
        total = totals.pop()
        rest = Residual(target, tuple(tokens[: i + 1]), total, total / before)
        yield (prob / before if total > 0 else 1.0), rest
        before = total


def _sampled_rounds(target: Tensor, dist: Tensor, tokens: Sequence[int]) -> Iterator[tuple[float, Residual]]:
    """The same for children drawn from ``dist`` [V] without replacement."""
    draft = _normalised(dist)
    for token in tokens:
        if not draft[token] > 0:
            raise ValueError(f"token {token} cannot have been drawn: its draft distribution gives it no probability")
        ratio, rest = float(target[token] / draft[token]), (target - draft).clamp(min=0)
        mass = float(rest.sum())
        yield (min(1.0, ratio) if mass > 0 else 1.0), Residual(rest, (), mass, mass)
        target = rest / mass
        draft = draft.clone()
        draft[token] = 0
        draft /= draft.sum().clamp(min=torch.finfo(draft.dtype).tiny)  # no token may be left, then no child follows


def _normalised(probs: Tensor) -> Tensor:
    wide = probs.cpu().double()
    return wide / wide.sum()


def _drafted_children(tree: DraftTree, row: int) -> list[int]:
    return [child for child in tree.children(row) if tree.roles[child] == DRAFT]


def _verdict(tree: DraftTree, path: Sequence[int], draws: Sequence[Draw], next_token: int) -> Verdict:
    """The whole verdict from the accepted path, the tests in their order, and the target's own token."""
    accept_probs = [math.nan] * len(tree)
    for draw in draws:
        accept_probs[draw.row] = draw.prob if draw.threshold is None else float(draw.accepted)
    return Verdict(
        path=tuple(path),
        accepted_tokens=tuple(tree.token_list[row] for row in path[1:]),
        outcomes=_outcomes(tree, set(path), {draw.row for draw in draws if not draw.accepted}),
        accept_probs=tuple(accept_probs),
        draws=tuple(draws),
        next_token=next_token,
        next_kind="recovered" if any(tree.roles[child] == DRAFT for child in tree.children(path[-1])) else "bonus",
    )


def _outcomes(tree: DraftTree, on_path: set[int], failed: set[int]) -> tuple[Outcome, ...]:
    """The state of each row, given the accepted path and the rows that failed their test."""
    outcomes: list[Outcome] = []
    for row, (parent, role) in enumerate(zip(tree.parent_list, tree.roles.tolist(), strict=True)):
        if row == 0:
            outcomes.append("root")
        elif role == WINDOW:
            outcomes.append("window")
        elif row in on_path:
            outcomes.append("accepted")
        elif parent not in on_path:
            outcomes.append("unreachable")
        else:
            outcomes.append("rejected" if row in failed else "untried")
    return tuple(outcomes)
