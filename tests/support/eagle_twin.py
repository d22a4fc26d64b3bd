"""EAGLE's drafters once more, straight from the tensors of its file: the slow twin that every layout is held to.

Written from the paper and the keys alone, without transformers: embedding first, feature second; no input norm in
layer 0 and no final norm; rotary positions in halves; one row after another, each over the rows before it. EAGLE-3's
layer norms both halves of what its attention reads, adds to the bare hidden state (or to the normed one), and brings a
norm and a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Twin:
    """tensors: a drafter file's; the numbers are what its config.json says or leaves to their defaults."""

    tensors: dict[str, Tensor]
    num_heads: int
    rope_theta: float = 10000.0
    eps: float = 1e-6

    def features(self, embedding: Tensor, tokens: Tensor, features: Tensor) -> Tensor:
        """Predicted features [n, H] of pairs at positions 0..n-1: embedding [V, H], tokens [n], features [n, H]."""
        hidden = self._linear("fc", torch.cat([embedding[tokens], features], dim=-1))
        num_layers = 1 + max(int(name.split(".")[1]) for name in self.tensors if name.startswith("layers."))
        for layer in range(num_layers):
            at = f"layers.{layer}."
            normed = self._norm(at + "input_layernorm", hidden) if layer else hidden
            hidden = hidden + self._attention(at + "self_attn.", normed)
            normed = self._norm(at + "post_attention_layernorm", hidden)
            gate = self._linear(at + "mlp.gate_proj", normed)
            up = self._linear(at + "mlp.up_proj", normed)
            hidden = hidden + self._linear(at + "mlp.down_proj", gate * torch.sigmoid(gate) * up)
        return hidden

    def _linear(self, name: str, inputs: Tensor) -> Tensor:
        output = inputs @ self.tensors[name + ".weight"].float().T
        bias = self.tensors.get(name + ".bias")
        return output if bias is None else output + bias.float()

    def _norm(self, name: str, hidden: Tensor) -> Tensor:
        scale = (hidden.pow(2).mean(-1, keepdim=True) + self.eps).rsqrt()
        return hidden * scale * self.tensors[name + ".weight"].float()

    def _attention(self, at: str, hidden: Tensor) -> Tensor:
        size = len(self.tensors[at + "q_proj.weight"]) // self.num_heads
        query, key, value = (self._linear(f"{at}{part}_proj", hidden).unflatten(-1, (-1, size)) for part in "qkv")
        query, key = self._rotate(query), self._rotate(key)  # [n, heads, size]
        group = self.num_heads // key.shape[1]
        rows = []
        for row in range(len(hidden)):
            heads = []
            for head in range(self.num_heads):
                keys, values = key[: row + 1, head // group], value[: row + 1, head // group]
                weights = torch.softmax(keys @ query[row, head] / size**0.5, dim=0)
                heads.append(weights @ values)
            rows.append(torch.cat(heads))
        return self._linear(at + "o_proj", torch.stack(rows))

    def _rotate(self, heads: Tensor) -> Tensor:
        half = heads.shape[-1] // 2
        frequencies = self.rope_theta ** (-torch.arange(half) / half)
        angles = torch.arange(len(heads))[:, None, None] * frequencies
        first, second = heads[..., :half], heads[..., half:]
        turned = [first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()]
        return torch.cat(turned, dim=-1)


@dataclass(frozen=True)
class Twin3(Twin):
    """EAGLE-3: a true feature goes through fc, a predicted one is the last output as it is."""

    norm_before_residual: bool = False

    def predicted(self, embedding: Tensor, tokens: Tensor, features: Tensor) -> Tensor:
        """Outputs [n + m, H]: features [n, F] are true, tokens [n + m] of which the last m continue the twin's own."""
        hidden = self._linear("fc", features)
        output = self._layer(embedding[tokens[: len(hidden)]], hidden)
        for count in range(len(hidden) + 1, len(tokens) + 1):
            hidden = torch.cat([hidden, output[-1:]])
            output = self._layer(embedding[tokens[:count]], hidden)
        return output

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., draft vocabulary]."""
        return self._linear("lm_head", self._norm("norm", hidden))

    def _layer(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        at = "midlayer."
        halves = [self._norm(at + "input_layernorm", embedded), self._norm(at + "hidden_norm", hidden)]
        residual = halves[1] if self.norm_before_residual else hidden
        hidden = residual + self._attention(at + "self_attn.", torch.cat(halves, dim=-1))
        normed = self._norm(at + "post_attention_layernorm", hidden)
        gate, up = self._linear(at + "mlp.gate_proj", normed), self._linear(at + "mlp.up_proj", normed)
        return hidden + self._linear(at + "mlp.down_proj", gate * torch.sigmoid(gate) * up)
