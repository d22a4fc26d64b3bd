"""What the target itself wants, computed from its hidden states through its LM head."""

from collections.abc import Iterator

import torch
from torch import Tensor

from explorer.training.dataset import Batch, FeatureSet

HELD_OUT_BATCH_TOKENS = 2_048
ROWS_AT_ONCE = 256


def soft_cross_entropy(logits: Tensor, wanted: Tensor) -> Tensor:
    """Mean over rows of the cross-entropy of softmax(logits [R, C]) against the distributions wanted [R, C]."""
    return -(wanted * logits.float().log_softmax(-1)).sum(-1).mean()


def top_tokens(hidden: Tensor, lm_head: Tensor, count: int) -> Tensor:
    """int64 [..., count]: the most likely tokens over the whole vocabulary, best first, after hidden [..., H]."""
    flat = hidden.reshape(-1, hidden.shape[-1])
    # In pieces: whole logits are [rows, 49152] float32 and would not fit in the processor's caches, let alone help.
    parts = [(piece @ lm_head.T).topk(count).indices for piece in flat.split(ROWS_AT_ONCE)]
    found = torch.cat(parts) if parts else torch.zeros(0, count, dtype=torch.int64)
    return found.reshape(*hidden.shape[:-1], count)


class HeldOut:
    """Held-out batches and the token the target itself puts first after each position, computed when first asked."""

    def __init__(self, data: FeatureSet, lm_head: Tensor) -> None:
        self._batches = [data.batch(indices) for indices in data.batch_indices(HELD_OUT_BATCH_TOKENS, seed=0)]
        self._lm_head = lm_head
        self._best: list[Tensor] = []

    def pairs(self, num_batches: int | None = None) -> Iterator[tuple[Batch, Tensor]]:
        """(batch, best [B, T] int64) for the first `num_batches` batches, None = all."""
        for index, batch in enumerate(self._batches[:num_batches]):
            if index == len(self._best):
                self._best.append(top_tokens(batch.features, self._lm_head, 1)[..., 0])
            yield batch, self._best[index]
