"""EAGLE-1: drafts on features in a static tree; every node has its own candidates (arXiv 2401.15077, section 4.1).

Source of the tree: `eagle/model/choices.py` of SafeAILab/EAGLE, branch v1 (25 nodes, though it is called 63 there).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.config import setting
from explorer.methods.base import Draft
from explorer.methods.eagle_base import EagleMethod
from explorer.methods.static_tree import StaticTree
from explorer.presets import load_tree, tree_names
from explorer.tree import DraftTree

if TYPE_CHECKING:
    from explorer.models.eagle_layer import EagleDrafter
    from explorer.target import Target


@dataclass(frozen=True)
class Eagle1Settings:
    """The published tree."""

    tree: str = setting("eagle1-25", kind="choice", choices=tree_names, help="static tree of candidate ranks")


class Eagle1(EagleMethod):
    """Fill a static tree level by level; only nodes with children are forwarded."""

    name = "eagle1"
    label = "EAGLE-1"
    Settings = Eagle1Settings

    def __init__(self, target: Target, drafter: EagleDrafter, settings: Eagle1Settings) -> None:
        super().__init__(target, drafter, settings)
        paths = load_tree(settings.tree)
        fitting = [path for path in paths if max(path) < drafter.num_draft_tokens]
        if len(fitting) < len(paths):
            self.notices.append(f"tree: the drafter knows {drafter.num_draft_tokens} tokens, higher ranks are left out")
        self._static = StaticTree.build(fitting, num_heads=len(fitting), max_rows=len(fitting) + 1)
        shape = DraftTree.from_lists([0] * len(self._static.parents), self._static.parents)
        self._mask = shape.tree_mask
        inner = [row for row in range(len(shape)) if shape.children(row)]
        depths = shape.depths.tolist()
        self._levels = [[row for row in inner if depths[row] == depth] for depth in range(1, max(depths))]
        self._children = {row: shape.children(row) for row in inner}

    def _grow(self, root: int, hidden: Tensor) -> Draft:
        """Each level reads the nodes of the one above and fills the rows below them."""
        num_rows, length = len(self._static.parents), self._cache.length
        tokens, probs = torch.zeros(num_rows, dtype=torch.int64), torch.full((num_rows,), float("nan"))
        tokens[0] = root
        features, expanded, drafted = {0: hidden}, dict[int, Tensor](), list[int]()
        self._fill([0], hidden[None], tokens, probs, expanded)
        passes_ms = [self._clock.lap()]
        for level, rows in enumerate(self._levels):
            drafted += rows
            above = torch.stack([features[self._static.parents[row]] for row in rows])
            predicted = self._forward_level(tokens[rows], above, self._mask[rows][:, drafted], length + level)
            features.update(zip(rows, predicted, strict=True))
            self._fill(rows, predicted, tokens, probs, expanded)
            passes_ms.append(self._clock.lap())
        tree = DraftTree.from_lists(tokens.tolist(), self._static.parents, draft_probs=probs.tolist())

        def rank_of(row: int, token: int) -> int | None:
            return self._rank(expanded.get(row), token)

        return Draft(tree, passes_ms=passes_ms, rank_of=rank_of)

    def _fill(
        self, rows: list[int], hidden: Tensor, tokens: Tensor, probs: Tensor, expanded: dict[int, Tensor]
    ) -> None:
        """Write the children of ``rows`` into tokens [N] and probs [N], by rank in each row's own order."""
        logprobs = self._log_softmax(hidden)
        ranks = [[self._static.ranks[child - 1] for child in self._children[row]] for row in rows]
        best = logprobs.topk(1 + max(map(max, ranks)), dim=-1)
        candidates, values = self.drafter.to_target(best.indices).cpu(), best.values.exp().cpu()
        for i, row in enumerate(rows):
            expanded[row] = logprobs[i]
            tokens[self._children[row]] = candidates[i, ranks[i]]
            probs[self._children[row]] = values[i, ranks[i]]
