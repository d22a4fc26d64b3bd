"""EAGLE-2's whole draft over fixed shapes: one captured computation reads the new pairs, grows the tree and cuts it.

Eager, a draft is ``depth`` + 1 passes of one small layer, and a GPU waits for Python between any two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.methods.eagle_tree import Drafting, Grown, TreeShape, grow
from explorer.models.attention import register_tree_attention
from explorer.models.draft_cache import RoomyDraftCache
from explorer.models.fixed_cache import FixedCache
from explorer.models.graphs import Capture, Repeated

if TYPE_CHECKING:
    from explorer.models.eagle_layer import FeatureDrafter
    from explorer.target import Target


class FixedDraft:
    """One shape of tree for one drafter. ``cache`` holds its true pairs; ``num_pairs`` are read at most at once.

    log_softmax: as of Drafting. read: true features [n, F] -> what the drafter takes for features, [n, H].
    """

    def __init__(
        self,
        target: Target,
        drafter: FeatureDrafter,
        shape: TreeShape,
        log_softmax: Callable[[Tensor], Tensor],
        read: Callable[[Tensor], Tensor],
    ) -> None:
        assert target.capture is not None
        self.num_pairs = shape.depth + 2  # as many as a step can accept, with the next root
        self._num_rows = self.num_pairs + shape.depth * shape.top_k
        self._target = target
        self._drafter, self._shape, self._log_softmax, self._read = drafter, shape, log_softmax, read
        sizes = drafter.cache_shape
        drafter.attend_with(register_tree_attention(target.backend, target.device, sizes.head_dim))
        self.cache = RoomyDraftCache(sizes, 0, target.dtype, target.device)
        self.capture: Capture = target.capture
        self._captured: _Captured | None = None

    @property
    def execution(self) -> str:
        """How drafts run: "graphed", or "eager" where capturing failed or gave other numbers."""
        return "eager" if self._captured is None else self._captured.run.execution

    def begin(self) -> None:
        """Forget all pairs and make as much room as the target has, so that no step of the run must."""
        self.cache.truncate(0)
        self.cache.reserve(self._target.cache.capacity + self._num_rows)
        self.cache.truncate(0)

    def __call__(self, tokens: Sequence[int], features: Tensor) -> Grown:
        """Commit pairs of tokens and the true features before them [n, F], grow from the last.

        What it returns is overwritten by the next call.
        """
        self.cache.reserve(self._num_rows)
        found = self._captured
        if found is None or found.storage is not self.cache.storage:
            found = self._captured = _Captured(self, features)
        found.send(tokens, features, self.cache.length)
        grown = found.run()
        self.cache.commit(range(len(tokens)))
        return grown

    def work(self, numbers: Tensor, features: Tensor, cache: FixedCache) -> Grown:
        """The computation: numbers [2 + num_pairs] are the cache's length, how many pairs are new, and their tokens."""
        length, count, pairs = numbers[:1], numbers[1:2], self.num_pairs
        positions = length + torch.arange(pairs, device=length.device)
        hidden = self._predict(numbers[2:], self._read(features), positions, None, cache.at(length, pairs))
        committed, k = length + count, self._shape.top_k

        def forward(tokens: Tensor, features: Tensor, slots: Tensor, level: int) -> Tensor:
            # The padding of the first pass lies where the drafts come: they overwrite it, or do not see it.
            place = cache.at(committed, k, skipped=level * k)
            return self._predict(tokens, features, (committed + level).expand(k), slots, place)

        drafting = Drafting(forward, self._log_softmax, self._drafter.to_target)
        return grow(hidden.index_select(0, count - 1), self._shape, drafting)

    def _predict(
        self, tokens: Tensor, features: Tensor, positions: Tensor, mask: Tensor | None, cache: FixedCache
    ) -> Tensor:
        batched = None if mask is None else mask[None, None]
        return self._drafter.predict(tokens[None], features[None], positions[None], batched, cache)[0]


class _Captured:
    """The computation over tensors that never move."""

    def __init__(self, draft: FixedDraft, features: Tensor) -> None:
        on_gpu = features.device.type == "cuda"
        self._sent = torch.zeros(2 + draft.num_pairs, dtype=torch.int64, pin_memory=on_gpu)
        self._numbers = self._sent.to(features.device)
        self._features = features.new_zeros(draft.num_pairs, features.shape[1])
        self.storage = draft.cache.storage
        self._cache = FixedCache(draft.cache)
        work = partial(draft.work, self._numbers, self._features, self._cache)
        self.run = Repeated(work, draft.capture, attrgetter("logprobs"))

    def send(self, tokens: Sequence[int], features: Tensor, length: int) -> None:
        """New pairs and the length of the cache before them."""
        self._sent[0], self._sent[1] = length, len(tokens)
        self._sent[2:] = 0
        self._sent[2 : 2 + len(tokens)] = torch.tensor(tokens)
        self._numbers.copy_(self._sent, non_blocking=True)
        self._features[: len(tokens)].copy_(features)
