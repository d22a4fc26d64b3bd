"""Acceptance rules: the drafted rows and the target's logits in, a Verdict out. Pure functions.

Every rule walks from the root: it tests the children of the current row in row order and descends into the one it
accepts. Where none is accepted, or the walk ends at a leaf, the target's own token follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from explorer.tree import DRAFT, WINDOW, DraftTree

Outcome = Literal["root", "accepted", "rejected", "untried", "unreachable", "window"]
NextKind = Literal["bonus", "recovered"]


@dataclass(frozen=True)
class Draw:
    """One acceptance test: ``prob`` is what the rule really used, ``uniform`` None where nothing was drawn."""

    row: int
    uniform: float | None
    prob: float
    accepted: bool
    threshold: float | None = None
    residual_mass: float | None = None
    residual_top: tuple[tuple[int, float], ...] = ()


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


def verify_greedy(tree: DraftTree, logits: Tensor) -> Verdict:
    """Accept a child if and only if it is the target's argmax at its parent: equal to greedy decoding, token for token.

    logits: [N, V]. All children of an accepted row are tested (they are compared with one argmax). Siblings are
    distinct tokens; should two be equal, the first is taken. Medusa, arXiv 2401.10774, section 2.3 at temperature 0;
    EAGLE eagle/model/utils.py evaluate_posterior, greedy branch.
    """
    choices = logits.argmax(dim=-1).tolist()
    tokens = tree.token_list
    path, draws = [0], list[Draw]()
    accept_probs = [float("nan")] * len(tree)
    while True:
        tested = _drafted_children(tree, path[-1])
        wanted = choices[path[-1]]
        accepted = next((row for row in tested if tokens[row] == wanted), None)
        for row in tested:
            accept_probs[row] = float(row == accepted)
            draws.append(Draw(row=row, uniform=None, prob=accept_probs[row], accepted=row == accepted))
        if accepted is None:
            break
        path.append(accepted)
    return Verdict(
        path=tuple(path),
        accepted_tokens=tuple(tokens[row] for row in path[1:]),
        outcomes=_outcomes(tree, path, {draw.row for draw in draws}),
        accept_probs=tuple(accept_probs),
        draws=tuple(draws),
        next_token=choices[path[-1]],
        next_kind="recovered" if tested else "bonus",
    )


def is_finite(logits: Tensor) -> bool:
    """False where a nan or an infinity would make every verdict meaningless."""
    return bool(torch.isfinite(logits.sum(dim=-1)).all())


def _drafted_children(tree: DraftTree, row: int) -> list[int]:
    return [child for child in tree.children(row) if tree.roles[child] == DRAFT]


def _outcomes(tree: DraftTree, path: list[int], tested: set[int]) -> tuple[Outcome, ...]:
    """The state of each row, given the accepted path and the rows that were tested."""
    on_path = set(path)
    outcomes: list[Outcome] = []
    for row, (parent, role) in enumerate(zip(tree.parent_list, tree.roles.tolist(), strict=True)):
        if row == 0:
            outcomes.append("root")
        elif role == WINDOW:
            outcomes.append("window")
        elif row in on_path:
            outcomes.append("accepted")
        elif row in tested:
            outcomes.append("rejected")
        else:
            outcomes.append("untried" if parent in on_path else "unreachable")
    return tuple(outcomes)
