"""Training-time test of EAGLE-3: a drafter's own features, several steps deep, at every row of a text at once.

Source: EAGLE-3 (arXiv 2503.01840), section 3.2 and figure 6. Attention is written for the one mask that this has, as in
`eagle/traineagle3/cnets.py` of SafeAILab/EAGLE: rows see true pairs causally, and of each own step one key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from explorer.models.attention import LAYOUT
from explorer.models.eagle3_layer import Eagle3Drafter
from explorer.models.eagle_layer import DraftCache
from explorer.training.dataset import Batch

UNROLLED = "unrolled"


class UnrolledCache(DraftCache):
    """Keys and values by step, [B, kv_heads, rows, head_dim] each; it is its own layout, for `attend` to find it."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[Tensor, Tensor]] = []
        self.layout: Any = self

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep a step's pairs of the only layer, and return them."""
        assert layer == 0
        self.steps.append((keys, values))
        return keys, values


def unroll(network: Eagle3Drafter, batch: Batch, num_steps: int, scale: Tensor | float = 1.0) -> Iterator[Tensor]:
    """Predicted hidden states of steps 0, 1, ..., each [B, T - 1 - step, H], as drafting would make them at every row.

    Row t reads token t + 1 with the true feature t in step 0, and token t + 1 + step with its own last prediction
    after that. It sees the true pairs up to t and its own later ones: what a draft that starts there sees. The
    prediction speaks of token t + 2 + step. scale: what true features are divided by, [F] or one number. The network
    attends with ``UNROLLED``.
    """
    hidden, cache = network.combine(batch.layers[:, :-1] / scale), UnrolledCache()
    num_pairs = hidden.shape[1]
    for step in range(min(num_steps, num_pairs)):
        num_rows = num_pairs - step
        tokens = batch.tokens[:, 1 + step :]
        positions = torch.arange(step, num_pairs)[None].expand_as(tokens)
        hidden = network.predict(tokens, hidden[:, :num_rows], positions, None, cache)
        yield hidden


def attend(
    _module: nn.Module, query: Tensor, key: Tensor, _value: Tensor, _mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """transformers' calling convention; query [B, heads, R, D], keys and values by step in the cache, [B, R, heads, D].

    Row t looks at the true pairs 0..t and at row t of each own step.
    """
    (keys, values), *own = options[LAYOUT].steps
    num_rows, num_pairs, num_groups = query.shape[2], keys.shape[2], key.shape[1]
    query = query.unflatten(1, (num_groups, -1)) * options["scaling"]  # [B, kv_heads, heads / kv_heads, R, D]
    scores = query @ keys[:, :, None].transpose(-1, -2)
    is_later = torch.ones(num_rows, num_pairs, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(is_later, -torch.inf)
    diagonals = [(query * step_keys[:, :, None, :num_rows]).sum(-1, keepdim=True) for step_keys, _ in own]
    weights = torch.cat([scores, *diagonals], dim=-1).softmax(-1).to(values.dtype)
    output = weights[..., :num_pairs] @ values[:, :, None]
    for index, (_, step_values) in enumerate(own):
        output = output + weights[..., num_pairs + index, None] * step_values[:, :, None, :num_rows]
    return output.flatten(1, 2).transpose(1, 2), None


AttentionInterface.register(UNROLLED, attend)
