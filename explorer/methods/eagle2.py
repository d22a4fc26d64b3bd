"""EAGLE-2: grows a tree by the drafter's own confidence and reranks it to a budget (arXiv 2406.16858, section 4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.config import setting
from explorer.methods.base import Draft
from explorer.methods.eagle_base import EagleMethod
from explorer.tree import DRAFT, ROOT, DraftTree

if TYPE_CHECKING:
    from explorer.models.eagle_layer import FeatureDrafter
    from explorer.target import Target


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


@dataclass
class _Beam:
    """The k nodes a level expands: their pool rows, tokens, cumulative scores and the features they continue from."""

    rows: Tensor  # [k] rows of the considered tree
    tokens: Tensor  # [k] target ids
    scores: Tensor  # [k]
    features: Tensor  # [k, H]
    mask: Tensor  # [k, drafted] which earlier draft slots each one sees


@dataclass
class _Pool:
    """Everything expanded, level by level, in the order it was found; row 0 of the considered tree is the root."""

    tokens: list[Tensor] = field(default_factory=list)
    parents: list[Tensor] = field(default_factory=list)
    logprobs: list[Tensor] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)
    size: int = 0
    expanded: dict[int, Tensor] = field(default_factory=dict)  # row -> [draft vocabulary] log-probabilities after it

    def add(self, parents: Tensor, tokens: Tensor, logprobs: Tensor, scores: Tensor) -> Tensor:
        """Append nodes; returns their rows in the considered tree."""
        rows = torch.arange(self.size + 1, self.size + 1 + len(tokens))
        self.parents.append(parents)
        self.tokens.append(tokens)
        self.logprobs.append(logprobs)
        self.scores.append(scores)
        self.size += len(tokens)
        return rows


class Eagle2(EagleMethod):
    """Expand by cumulative confidence, rerank to ``total_tokens``."""

    name = "eagle2"
    label = "EAGLE-2"
    Settings = Eagle2Settings

    def __init__(self, target: Target, drafter: FeatureDrafter, settings: Eagle2Settings) -> None:
        super().__init__(target, drafter, settings)
        self._top_k = min(settings.top_k, drafter.num_draft_tokens)
        if self._top_k < settings.top_k:
            self.notices.append(f"top_k: the drafter knows {self._top_k} tokens, {self._top_k} is used")
        pool = self._top_k + settings.depth * self._top_k**2
        self._num_drafted = min(settings.total_tokens - 1, pool)
        if self._num_drafted < settings.total_tokens - 1:
            self.notices.append(
                f"total_tokens: depth {settings.depth} and top_k {self._top_k} expand {pool} nodes, "
                f"so {pool + 1} rows are used"
            )
        self.settings = replace(settings, top_k=self._top_k, total_tokens=1 + self._num_drafted)

    def _grow(self, root: int, hidden: Tensor) -> Draft:
        """``depth`` passes over beams, then the rerank."""
        pool, length = _Pool(), self._cache.length
        beam = self._first_level(pool, hidden)
        passes_ms = [self._clock.lap()]
        for level in range(self.settings.depth):
            beam = self._expand(pool, beam, length + level)
            passes_ms.append(self._clock.lap())
        return self._rerank(pool, root, passes_ms)

    def _top_children(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log-probabilities [R, draft vocabulary], the best top_k of each row [R, k], their draft ids [R, k])."""
        logprobs = self._log_softmax(hidden)
        best = logprobs.topk(self._top_k, dim=-1)
        return logprobs, best.values.cpu(), best.indices

    def _first_level(self, pool: _Pool, hidden: Tensor) -> _Beam:
        """The root's children are the first beam."""
        logprobs, values, ids = self._top_children(hidden[None])
        pool.expanded[0] = logprobs[0]
        tokens = self.drafter.to_target(ids[0]).cpu()
        rows = pool.add(torch.zeros(self._top_k, dtype=torch.int64), tokens, values[0], values[0])
        mask = torch.zeros(self._top_k, 0, dtype=torch.bool)
        return _Beam(rows, tokens, values[0], hidden.expand(self._top_k, -1), mask)

    def _expand(self, pool: _Pool, beam: _Beam, position: int) -> _Beam:
        """Forward the beam in one pass, pool all k * k children, take the k best of them as the next beam."""
        k = self._top_k
        slots = torch.cat([beam.mask, torch.eye(k, dtype=torch.bool)], dim=1)
        hidden = self._forward_level(beam.tokens, beam.features, slots, position)
        logprobs, values, ids = self._top_children(hidden)
        pool.expanded.update(zip(beam.rows.tolist(), logprobs, strict=True))
        tokens = self.drafter.to_target(ids.flatten()).cpu()
        scores = (beam.scores[:, None] + values).flatten()
        rows = pool.add(beam.rows.repeat_interleave(k), tokens, values.flatten(), scores)
        chosen = _best(scores, k)
        parent = chosen // k  # index into the beam
        return _Beam(rows[chosen], tokens[chosen], scores[chosen], hidden[parent.to(hidden.device)], slots[parent])

    def _rerank(self, pool: _Pool, root: int, passes_ms: list[float]) -> Draft:
        """Keep the ``total_tokens`` - 1 best nodes by cumulative confidence, in the order they were found."""
        nan = torch.tensor([float("nan")])
        considered = DraftTree(
            tokens=torch.cat([torch.tensor([root]), *pool.tokens]),
            parents=torch.cat([torch.tensor([-1]), *pool.parents]),
            roles=torch.tensor([ROOT] + [DRAFT] * pool.size, dtype=torch.int8),
            draft_probs=torch.cat([nan, *pool.logprobs]).exp(),
        )
        chosen = _best(torch.cat(pool.scores), self._num_drafted).sort().values + 1
        kept = torch.cat([torch.tensor([0]), chosen])

        def rank_of(row: int, token: int) -> int | None:
            return self._rank(pool.expanded.get(row), token)

        return Draft(considered, kept=kept, passes_ms=passes_ms, rank_of=rank_of)


def _best(scores: Tensor, count: int) -> Tensor:
    """Indices of the ``count`` highest scores, ties by index.

    The order matters: a child of log-probability 0 ties with its parent, which was found earlier, so the parent is
    taken first and no node loses it (torch.topk leaves that open, and the reference implementation with it).
    """
    return scores.sort(descending=True, stable=True).indices[:count]
