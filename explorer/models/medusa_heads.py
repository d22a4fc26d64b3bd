"""Medusa's heads: each guesses one token further ahead from the same hidden state of the target.

Source: Medusa (arXiv 2401.10774) section 2.1 and `medusa/model/medusa_model.py` of FasterDecoding/Medusa.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class ResBlock(nn.Module):
    """`x + SiLU(Linear(x))`; with the zero weights set here only the bias separates it from the identity."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden_size, hidden_size)
        nn.init.zeros_(self.linear.weight)

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden + nn.functional.silu(self.linear(hidden))


class MedusaHeads(nn.ModuleList):
    """A list of heads, so that the state dict has the published keys.

    `{head}.{block}.linear.{weight,bias}`, and `{head}.{num_layers}.weight` where a head owns its LM matrix (layouts A
    and C); without it every head is read through the target's LM head (layout B, "version 2").
    """

    def __init__(
        self, num_heads: int, num_layers: int, hidden_size: int, vocab_size: int, own_lm: bool = False
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.own_lm = own_lm
        for _ in range(num_heads):
            parts: list[nn.Module] = [ResBlock(hidden_size) for _ in range(num_layers)]
            if own_lm:
                parts.append(nn.Linear(hidden_size, vocab_size, bias=False))
            self.append(nn.Sequential(*parts))

    def forward(self, hidden: Tensor, lm_head: Callable[[Tensor], Tensor]) -> Tensor:
        """Logits of every head: hidden [..., H] (the target's, after its final norm) -> [num_heads, ..., V].

        Head h (from 0) at position t guesses token t + 2 + h. `lm_head` is used only by heads without a matrix.
        """
        outputs = torch.stack([head(hidden) for head in self])
        return outputs if self.own_lm else lm_head(outputs)
