"""What a drafter's trees are worth: the methods drafting along text that the target wrote, every budget at once.

Greedy text is the target's own choice everywhere, so the tokens after a root say which nodes the target would accept,
and no verify pass is needed. One drafting of a wide tree answers for every smaller budget, because a smaller tree is
the better part of it. Steps are then walked as decoding would walk them: after an accepted path and its own token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from explorer.config import Sampling
from explorer.methods.base import Draft, Method
from explorer.methods.eagle2 import Eagle2
from explorer.methods.medusa import Medusa, MedusaSettings
from explorer.prediction import Profile, Shape
from explorer.presets import load_tree
from explorer.sampling import Sampler
from explorer.target import Target, TargetOutput
from explorer.training.dataset import FeatureSet
from explorer.tree import DraftTree
from explorer.verify import Verdict

MAX_ROWS = 64
GRID = dict.fromkeys((1, 2, 3, 4, 6, 10), (1, 2, 3, 4, 5, 6))
_WIDEST = 512  # the setting's own bound: the whole pool is looked at, nothing is cut


@dataclass(frozen=True)
class TextChoice:
    """How much of the held-out text is drafted along: conversations, and answer tokens of each."""

    num_conversations: int = 32
    num_tokens: int = 96
    text: str = "held-out conversations the target wrote, greedy answers"


@dataclass
class _Walks:
    """Rank at which each right node enters the tree, by shape: one list a root, in the order of the text.

    A root has the ranks of the nodes on the target's own path, ascending: budget n accepts those below n - 1.
    """

    ranks: list[list[list[int]]] = field(default_factory=list)

    def tau(self, num_rows: int) -> float:
        """Mean acceptance length with this many rows; a step that the end of a text cuts does not count."""
        steps = accepted = 0
        for roots in self.ranks:
            root = 0
            while root < len(roots):
                taken = sum(rank < num_rows - 1 for rank in roots[root])
                if root + taken + 1 > len(roots):
                    break
                steps, accepted, root = steps + 1, accepted + taken, root + taken + 1
        return 1 + accepted / steps if steps else 1.0


def profile_eagle(
    kind: type[Eagle2],
    target: Target,
    drafter: Any,
    held_out: FeatureSet,
    choice: TextChoice | None = None,
    grid: Mapping[int, Sequence[int]] = GRID,
) -> Profile:
    """tau of EAGLE-2 or EAGLE-3 for a grid of top_k -> depths, and up to 64 rows."""
    choice = choice or TextChoice()
    shapes, num_tokens = [], 0
    for top_k, depths in tqdm(grid.items(), desc=f"{kind.name} profile", unit="top_k"):
        method = kind(target, drafter, kind.Settings(_WIDEST, max(depths), top_k))
        walks = {depth: _Walks() for depth in depths}
        num_tokens = 0
        for roots in _conversations(method, held_out, choice):
            drafts = [(_right_rows(draft.considered, wanted), draft.considered) for draft, wanted in roots]
            num_tokens += len(drafts)
            for depth, walk in walks.items():
                walk.ranks.append([_score_ranks(rows, tree, depth + 1) for rows, tree in drafts])
        shapes += [
            Shape({"depth": depth, "top_k": top_k}, _budgets(walk, 1 + top_k + depth * top_k**2))
            for depth, walk in walks.items()
        ]
    return Profile(kind.name, choice.text, num_tokens, shapes)


def profile_medusa(
    target: Target, drafter: Any, held_out: FeatureSet, tree: str, choice: TextChoice | None = None
) -> Profile:
    """tau of Medusa for every beginning of a static tree, whose paths are listed best first."""
    choice = choice or TextChoice()
    paths = [tuple(path) for path in load_tree(tree) if len(path) <= drafter.num_heads]
    method = Medusa(target, drafter, MedusaSettings(tree, len(paths) + 1))
    order = {path: rank for rank, path in enumerate(paths)}
    rank_of_row = [order[path] for path in sorted(paths, key=lambda path: (len(path), path))]
    walk, num_tokens = _Walks(), 0
    for roots in _conversations(method, held_out, choice):
        rows = [_right_rows(draft.considered, wanted) for draft, wanted in roots]
        walk.ranks.append([[rank_of_row[row - 1] for row in path] for path in rows])
        num_tokens += len(rows)
    return Profile("medusa", choice.text, num_tokens, [Shape({"tree": tree}, _budgets(walk, len(paths) + 1))])


def _budgets(walk: _Walks, num_rows: int) -> list[float]:
    return [round(walk.tau(rows), 4) for rows in range(1, min(num_rows, MAX_ROWS) + 1)]


def _conversations(
    method: Method, held_out: FeatureSet, choice: TextChoice
) -> Iterator[list[tuple[Draft, Sequence[int]]]]:
    """Per chosen conversation: what the method drafts after each answer token, and the tokens that really follow."""
    corpus = held_out.corpus
    greedy = np.flatnonzero(corpus.temp == 0)[: choice.num_conversations]
    for index in greedy:
        tokens = corpus.conversation(index).tolist()
        outputs = _Outputs.of(method, held_out, slice(*corpus.offsets[index : index + 2]))
        yield list(_drafts(method, tokens, outputs, int(corpus.start[index]), choice.num_tokens))


@dataclass(frozen=True)
class _Outputs:
    """What the target's passes over T tokens would have given: hidden [T, H], and what entered the method's layers."""

    hidden: Tensor
    layers: dict[int, Tensor]

    @classmethod
    def of(cls, method: Method, held_out: FeatureSet, span: slice) -> _Outputs:
        """The stored features of one conversation."""

        def tensor(values: np.ndarray) -> Tensor:
            return torch.from_numpy(values[span]).to(method.target.device, method.target.dtype)

        if not method.feature_layers:
            return cls(tensor(held_out.features), {})
        assert held_out.layers is not None
        entered = tensor(held_out.layers).chunk(len(method.feature_layers), dim=-1)
        return cls(tensor(held_out.features), dict(zip(method.feature_layers, entered, strict=True)))

    def rows(self, start: int, end: int) -> TargetOutput:
        """Of a pass over some of the tokens."""
        layers = {layer: states[start:end] for layer, states in self.layers.items()}
        return TargetOutput(torch.empty(0), self.hidden[start:end], layers)


def _drafts(
    method: Method, tokens: list[int], outputs: _Outputs, start: int, num_tokens: int
) -> Iterator[tuple[Draft, Sequence[int]]]:
    """Draft as if the target decoded this text one token at a time; ``outputs`` stand for its passes."""
    method.start(tokens[:start], outputs.rows(0, start), Sampler(Sampling()))
    end = min(len(tokens), start + num_tokens)
    for root in range(start, end - 1):
        yield method.draft(tokens[root]), tokens[root + 1 : end]
        method.update(_ROOT_ALONE, outputs.rows(root, root + 1))


_ROOT_ALONE = Verdict((0,), (), ("root",), (float("nan"),), (), next_token=0, next_kind="recovered")


def _right_rows(tree: DraftTree, wanted: Sequence[int]) -> list[int]:
    """Rows below the root that spell the beginning of ``wanted``."""
    rows = [0]
    for token in wanted:
        child = next((row for row in tree.children(rows[-1]) if tree.token_list[row] == token), None)
        if child is None:
            break
        rows.append(child)
    return rows[1:]


def _score_ranks(rows: list[int], tree: DraftTree, max_depth: int) -> list[int]:
    """At which rank the rerank takes each of these rows among the nodes down to ``max_depth``, ties by row."""
    depths = tree.depths
    considered = (depths[1:] <= max_depth).nonzero().flatten() + 1
    order = considered[tree.scores[considered].sort(descending=True, stable=True).indices]
    rank = {row: place for place, row in enumerate(order[: MAX_ROWS - 1].tolist())}
    found = [rank.get(row, MAX_ROWS) for row in rows if depths[row] <= max_depth]
    assert all(above <= below for above, below in pairwise(found)), "a node outranks its parent"
    return found
