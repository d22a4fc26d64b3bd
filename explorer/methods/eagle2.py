"""EAGLE-2: drafts on features, grows a tree by its own confidence, reranks it to a budget (arXiv 2406.16858).

The drafter pairs the feature of position i with the embedding of token i + 1 at position i. Its cache holds pairs of
true features only: what a draft appends is dropped before the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.clock import Clock
from explorer.config import setting
from explorer.methods.base import Draft, Method
from explorer.sampling import Sampler
from explorer.tree import DRAFT, ROOT, DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.models.eagle_layer import EagleDrafter
    from explorer.target import Target, TargetOutput


@dataclass(frozen=True)
class Eagle2Settings:
    """The published defaults: 60 rows, 5 expansions after the first level, 10 children a node."""

    total_tokens: int = setting(60, kind="int", min=2, max=512, step=1, help="rows verified, root included")
    depth: int = setting(5, kind="int", min=0, max=32, step=1, help="expansions after the first level")
    top_k: int = setting(10, kind="int", min=1, max=64, step=1, help="children of a node, and nodes a level expands")


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


class Eagle2(Method):
    """Expand by cumulative confidence, rerank to ``total_tokens``."""

    name = "eagle2"
    label = "EAGLE-2"
    needs_drafter = True
    Settings = Eagle2Settings

    def __init__(self, target: Target, drafter: EagleDrafter, settings: Eagle2Settings) -> None:
        from explorer.models.eagle_layer import DraftCache  # loaded already, with the drafter

        super().__init__(target, drafter, settings)
        self._top_k = min(settings.top_k, drafter.num_draft_tokens)
        if self._top_k < settings.top_k:
            self.notices.append(f"top_k: the drafter knows {self._top_k} tokens, {self._top_k} is used")
        pool = self._top_k + settings.depth * self._top_k**2
        self._num_drafted = min(settings.total_tokens - 1, pool)
        if self._num_drafted < settings.total_tokens - 1:
            self.notices.append(
                f"total_tokens: depth {settings.depth} and top_k {self._top_k} expand {pool} nodes, "
                f"{pool + 1} rows is used"
            )
        self._clock = Clock(target.device)
        self._cache = DraftCache()
        self._tokens: list[int] = []  # tokens of the pairs not yet in the cache, the root to come
        self._features = torch.empty(0)  # [len(tokens) + 1, H] their true features

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Read all prompt pairs but the last, whose token is the first root."""
        self._clock.start()
        self._cache.truncate(0)
        if len(prompt_ids) > 1:
            self._extend(torch.tensor(prompt_ids[1:]), output.hidden[:-1])
        self._tokens, self._features = [], output.hidden[-1:]
        return self._clock.lap()

    @torch.inference_mode()
    def draft(self, root: int) -> Draft:
        """One pass over the new true features, ``depth`` passes over beams, then the rerank."""
        self._clock.start()
        passes_ms, pool = [], _Pool()
        hidden = self._extend(torch.tensor([*self._tokens, root]), self._features)[-1]
        length = self._cache.length
        beam = self._first_level(pool, hidden)
        passes_ms.append(self._clock.lap())
        for level in range(self.settings.depth):
            beam = self._expand(pool, beam, length + level)
            passes_ms.append(self._clock.lap())
        self._cache.truncate(length)
        return self._rerank(pool, root, passes_ms)

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """The accepted rows' true features pair with the tokens that follow them; the next root comes last."""
        self._tokens = list(verdict.accepted_tokens)
        self._features = output.hidden[list(verdict.path)]

    def _extend(self, tokens: Tensor, features: Tensor) -> Tensor:
        """Append pairs of true features to the cache; returns their predicted features [R, H]."""
        positions = torch.arange(self._cache.length, self._cache.length + len(tokens))
        return self._forward(tokens, features, positions, None)

    def _forward(self, tokens: Tensor, features: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        device = self.target.device
        hidden: Tensor = self.drafter(
            tokens.to(device), features, positions.to(device), None if mask is None else mask.to(device), self._cache
        )
        return hidden

    def _top_children(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(log-probabilities [R, draft vocabulary], the best top_k of each row [R, k], their draft ids [R, k])."""
        logprobs = self.drafter.logits(hidden).float().log_softmax(dim=-1)
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
        slots = torch.cat([beam.mask, torch.eye(k, dtype=torch.bool)], dim=1)  # what each one sees of this draft
        prefix = torch.ones(k, self._cache.length - beam.mask.shape[1], dtype=torch.bool)
        hidden = self._forward(
            beam.tokens, beam.features, torch.full((k,), position), torch.cat([prefix, slots], dim=1)
        )
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
            logprobs, draft_id = pool.expanded.get(row), self.drafter.to_draft(token)
            if logprobs is None or draft_id is None:
                return None
            return int((logprobs > logprobs[draft_id]).sum())

        return Draft(considered, kept=kept, passes_ms=passes_ms, rank_of=rank_of)


def _best(scores: Tensor, count: int) -> Tensor:
    """Indices of the ``count`` highest scores, ties by index.

    The order matters: a child of log-probability 0 ties with its parent, which was found earlier, so the parent is
    taken first and no node loses it (torch.topk leaves that open, and the reference implementation with it).
    """
    return scores.sort(descending=True, stable=True).indices[:count]
