"""EAGLE-1: drafts on features in a static tree; every node has its own candidates (arXiv 2401.15077, section 4.1).

Greedy runs take a node's best candidates; at a temperature they are drawn from its warped distribution without
replacement, one after the other, and the distribution goes to the verifier with them (`eagle/model/cnets.py`, sample).
Source of the tree: `eagle/model/choices.py` of SafeAILab/EAGLE, branch v1 (25 nodes, though it is called 63 there).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.config import setting
from explorer.methods.base import Draft
from explorer.methods.eagle_base import EagleMethod
from explorer.presets import load_tree, tree_names
from explorer.sampling import Sampler
from explorer.static_tree import StaticTree
from explorer.tree import DraftTree

if TYPE_CHECKING:
    from explorer.models.eagle_layer import EagleDrafter
    from explorer.target import Target, TargetOutput


@dataclass(frozen=True)
class Eagle1Settings:
    """The published tree."""

    tree: str = setting("eagle1-25", kind="choice", choices=tree_names, help="static tree of candidate ranks")


@dataclass
class _Filled:
    """The static tree of N rows as far as it is filled; rows a sampled parent had no token for stay absent."""

    tokens: Tensor  # [N] target ids
    probs: Tensor  # [N]
    present: set[int] = field(default_factory=lambda: {0})
    logprobs: dict[int, Tensor] = field(default_factory=dict)  # row -> [draft vocabulary] after it
    dists: dict[int, Tensor] = field(default_factory=dict)  # row -> [V] that its children were drawn from

    def put(self, rows: list[int], tokens: Tensor, probs: Tensor) -> None:
        """Give tokens to ``rows``."""
        self.tokens[rows], self.probs[rows] = tokens, probs
        self.present.update(rows)


class Eagle1(EagleMethod):
    """Fill a static tree level by level; only nodes with children are forwarded."""

    name = "eagle1"
    label = "EAGLE-1"
    Settings = Eagle1Settings
    _sampler: Sampler  # of the run under way

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

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Read all prompt pairs but the last, whose token is the first root."""
        self._sampler = sampler
        return super().start(prompt_ids, output, sampler)

    def _grow(self, root: int, hidden: Tensor) -> Draft:
        """Each level reads the nodes of the one above and fills the rows below them."""
        num_rows, length = len(self._static.parents), self._cache.length
        filled = _Filled(torch.zeros(num_rows, dtype=torch.int64), torch.full((num_rows,), float("nan")))
        filled.tokens[0] = root
        features, drafted = {0: hidden}, list[int]()
        self._fill([0], hidden[None], filled)
        passes_ms = [self._clock.lap()]
        for level, inner in enumerate(self._levels):
            rows = [row for row in inner if row in filled.present]
            if not rows:
                break
            drafted += rows
            above = torch.stack([features[self._static.parents[row]] for row in rows])
            slots = self._mask[rows][:, drafted]
            predicted = self._forward_level(filled.tokens[rows], above, slots, length + level)
            features.update(zip(rows, predicted, strict=True))
            self._fill(rows, predicted, filled)
            passes_ms.append(self._clock.lap())
        return self._draft(filled, passes_ms)

    def _draft(self, filled: _Filled, passes_ms: list[float]) -> Draft:
        """The rows that have a token, with what they were drawn from."""
        rows = sorted(filled.present)
        tree = DraftTree.from_lists(filled.tokens.tolist(), self._static.parents, draft_probs=filled.probs.tolist())
        dist_rows = [i for i, row in enumerate(rows) if row in filled.dists]

        def rank_of(row: int, token: int) -> int | None:
            return self._rank(filled.logprobs.get(rows[row]), token)

        return Draft(
            tree if len(rows) == len(tree) else tree.keep(rows),
            draft_dists=torch.stack([filled.dists[rows[i]] for i in dist_rows]) if dist_rows else None,
            dist_rows=dist_rows,
            passes_ms=passes_ms,
            rank_of=rank_of,
        )

    def _fill(self, rows: list[int], hidden: Tensor, filled: _Filled) -> None:
        """Give the children of ``rows`` their tokens: by rank in each row's own order, or drawn from it."""
        logprobs = self._log_softmax(hidden)
        filled.logprobs.update(zip(rows, logprobs, strict=True))
        if self._sampler.is_random:
            for row, scores in zip(rows, logprobs, strict=True):
                self._draw(row, scores, filled)
            return
        ranks = [[self._static.ranks[child - 1] for child in self._children[row]] for row in rows]
        best = logprobs.topk(1 + max(map(max, ranks)), dim=-1)
        candidates, values = self.drafter.to_target(best.indices).cpu(), best.values.exp().cpu()
        for i, row in enumerate(rows):
            filled.put(self._children[row], candidates[i, ranks[i]], values[i, ranks[i]])

    def _draw(self, row: int, logprobs: Tensor, filled: _Filled) -> None:
        """Draw the children of one row from its warped distribution over the target's vocabulary."""
        own = self._sampler.warp(logprobs)
        dist = torch.zeros(self.target.vocab_size)
        dist[self.drafter.to_target(torch.arange(len(own), device=own.device)).cpu()] = own.cpu()
        drawn = torch.tensor(self._sampler.draw_distinct(dist, len(self._children[row])))
        filled.put(self._children[row][: len(drawn)], drawn, dist[drawn])
        filled.dists[row] = dist
