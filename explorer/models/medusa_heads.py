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
    and C); without it every head is read through the target's LM head (layout B, "version 2"). vocab_size: rows of the
    heads' matrices, the draft vocabulary.
    """

    token_map: Tensor | None

    def __init__(
        self, num_heads: int, num_layers: int, hidden_size: int, vocab_size: int, own_lm: bool = False
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.own_lm = own_lm
        self.num_draft_tokens = vocab_size
        self.register_buffer("token_map", None, persistent=False)
        for _ in range(num_heads):
            parts: list[nn.Module] = [ResBlock(hidden_size) for _ in range(num_layers)]
            if own_lm:
                parts.append(nn.Linear(hidden_size, vocab_size, bias=False))
            self.append(nn.Sequential(*parts))

    def forward(self, hidden: Tensor, lm_head: Callable[[Tensor], Tensor]) -> Tensor:
        """Logits of every head: hidden [..., H] (the target's, after its final norm) -> [num_heads, ..., V].

        V is the draft vocabulary. Head h (from 0) at position t guesses token t + 2 + h. `lm_head` is only for heads
        without a matrix: the target's, or of what `head_layer` gives.
        """
        outputs = torch.stack([head(hidden) for head in self])
        return outputs if self.own_lm else lm_head(outputs)

    def guess_next(self, token_ids: Tensor, hidden: Tensor, lm_head: Callable[[Tensor], Tensor]) -> Tensor:
        """What head 0 takes for the token after each of tokens 1..n-1: target ids [n - 1].

        token_ids [n] and the target's hidden states over them, [n, H], lm_head its whole LM head; the guess after token
        t + 1 reads position t.
        """
        outputs = self[0](hidden[:-1])
        return self.to_target(outputs.argmax(dim=-1)) if self.own_lm else lm_head(outputs).argmax(dim=-1)

    def tie_equal_blocks(self) -> None:
        """Hold one block per head where all its blocks are equal: the original repeats one object."""
        for head in self:
            assert isinstance(head, nn.Sequential)
            first, *others = (head[block].state_dict() for block in range(self.num_layers))
            if all(torch.equal(other[name], tensor) for other in others for name, tensor in first.items()):
                for block in range(1, self.num_layers):
                    head[block] = head[0]

    def restrict(self, token_map: Tensor) -> None:
        """A reduced draft vocabulary: draft id i stands for target token ``token_map[i]``.

        Heads' own matrices have its rows already; heads without are read through `head_layer`.
        """
        self.token_map = token_map
        self.num_draft_tokens = len(token_map)

    def head_layer(self, lm_head: nn.Linear) -> nn.Linear:
        """The rows of the target's LM head that heads without a matrix draft from; itself where that is all of them."""
        if self.token_map is None:
            return lm_head
        layer = nn.Linear(lm_head.in_features, len(self.token_map), bias=lm_head.bias is not None, device="meta")
        layer.weight = nn.Parameter(lm_head.weight.detach()[self.token_map], requires_grad=False)
        if lm_head.bias is not None:
            layer.bias = nn.Parameter(lm_head.bias.detach()[self.token_map], requires_grad=False)
        return layer

    def to_target(self, draft_ids: Tensor) -> Tensor:
        """Target token ids of draft ids, any shape; the same ids unless ``restrict`` was called."""
        return draft_ids if self.token_map is None else self.token_map[draft_ids]

    def to_draft(self, token: int) -> int | None:
        """The draft id of a target token, None where the heads' vocabulary lacks it."""
        if self.token_map is None:
            return token
        found = (self.token_map == token).nonzero().flatten().tolist()
        return found[0] if found else None
