"""EAGLE-2: grows a tree by the drafter's own confidence and reranks it to a budget (arXiv 2406.16858, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.config import setting
from explorer.methods.base import Draft
from explorer.methods.eagle_base import EagleMethod
from explorer.methods.eagle_tree import Drafting, Grown, TreeShape, grow
from explorer.sampling import Sampler
from explorer.tree import DRAFT, ROOT, DraftTree

if TYPE_CHECKING:
    from explorer.methods.fixed_draft import FixedDraft
    from explorer.models.eagle_layer import FeatureDrafter
    from explorer.target import Target, TargetOutput

MAX_FIXED_DRAFTS = 4


@dataclass(frozen=True)
class Eagle2Settings:
    """The published defaults: 60 rows, 5 expansions after the first level, 10 children a node."""

    total_tokens: int = setting(
        60, kind="int", min=2, max=512, step=1, allow_auto=True, help="rows verified, root included"
    )
    depth: int = setting(
        5,
        kind="int",
        min=0,
        max=32,
        step=1,
        allow_auto=True,
        help="expansions after the first level: the tree has depth + 1 levels below its root",
    )
    top_k: int = setting(
        10, kind="int", min=1, max=64, step=1, allow_auto=True, help="children of a node, and nodes a level expands"
    )


class Eagle2(EagleMethod):
    """Expand by cumulative confidence, rerank to ``total_tokens``."""

    name = "eagle2"
    label = "EAGLE-2"
    Settings = Eagle2Settings

    def __init__(self, target: Target, drafter: FeatureDrafter, settings: Eagle2Settings) -> None:
        super().__init__(target, drafter, settings)
        top_k = min(settings.top_k, drafter.num_draft_tokens)
        if top_k < settings.top_k:
            self.notices.append(f"top_k: the drafter knows {top_k} tokens, {top_k} is used")
        pool = top_k + settings.depth * top_k**2
        num_drafted = min(settings.total_tokens - 1, pool)
        if num_drafted < settings.total_tokens - 1:
            self.notices.append(
                f"total_tokens: depth {settings.depth} and top_k {top_k} expand {pool} nodes, "
                f"so {pool + 1} rows are used"
            )
        self.settings = replace(settings, top_k=top_k, total_tokens=1 + num_drafted)
        self._shape = TreeShape(top_k, settings.depth, num_drafted)
        self._fixed = None if target.capture is None else self._fixed_draft()
        if self._fixed is not None:
            self._cache = self._fixed.cache

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """As of EagleMethod."""
        if self._fixed is not None:
            self._fixed.begin()
        return super().start(prompt_ids, output, sampler)

    @torch.inference_mode()
    def draft(self, root: int) -> Draft:
        """As of EagleMethod; where the target's passes are captured, all of it at once, in one measured pass."""
        if self._fixed is None:
            return super().draft(root)
        self._clock.start()
        tokens, features = [*self._tokens, root], self._features
        early = max(len(tokens) - self._fixed.num_pairs, 0)  # more wait only after plain steps
        if early:
            self._extend(torch.tensor(tokens[:early]), features[:early])
        grown = self._fixed(tokens[early:], features[early:]).to_host()
        draft = _draft(grown, root, [self._clock.lap()], self._rank)
        return draft._replace(extra={"execution": self._fixed.execution})

    def _fixed_draft(self) -> FixedDraft:
        """The drafter keeps those of the last few shapes, so that the next run finds its own captured."""
        from explorer.methods.fixed_draft import FixedDraft

        kept: dict[TreeShape, FixedDraft] = self.drafter.fixed_drafts
        found = kept.pop(self._shape, None)
        kept[self._shape] = found or FixedDraft(self.target, self.drafter, self._shape, self._log_softmax, self._read)
        while len(kept) > MAX_FIXED_DRAFTS:  # each holds a cache and its graph's memory
            del kept[next(iter(kept))]
        return kept[self._shape]

    def _grow(self, root: int, hidden: Tensor) -> Draft:
        """``depth`` passes over beams, then the rerank."""
        length, passes_ms = self._cache.length, list[float]()

        def forward(tokens: Tensor, features: Tensor, slots: Tensor, level: int) -> Tensor:
            return self._forward_level(tokens, features, slots, length + level)

        drafting = Drafting(forward, self._log_softmax, self.drafter.to_target)
        grown = grow(hidden[None], self._shape, drafting, lambda: passes_ms.append(self._clock.lap()))
        return _draft(grown.to_host(), root, passes_ms, self._rank)


def _draft(grown: Grown, root: int, passes_ms: list[float], rank: Callable[[Tensor | None, int], int | None]) -> Draft:
    """What was grown below ``root``. rank: of a target token in one row of log-probabilities."""
    considered = DraftTree(
        tokens=torch.cat([torch.tensor([root]), grown.tokens]),
        parents=torch.cat([torch.tensor([-1]), grown.parents]),
        roles=torch.tensor([ROOT] + [DRAFT] * len(grown.tokens), dtype=torch.int8),
        draft_probs=torch.cat([torch.tensor([float("nan")]), grown.logprobs]).exp(),
    )

    def rank_of(row: int, token: int) -> int | None:
        return rank(_logprobs_after(grown, row), token)

    return Draft(considered, kept=torch.cat([torch.tensor([0]), grown.chosen]), passes_ms=passes_ms, rank_of=rank_of)


def _logprobs_after(grown: Grown, row: int) -> Tensor | None:
    """What the drafter gave after a row of the considered tree, None where it was not expanded."""
    for rows, logprobs in grown.expanded:
        at = (rows == row).nonzero()
        if len(at):
            return logprobs[int(at[0])]
    return None
