"""Attention, MLP and norm of well-known layers with fewer, larger products.

transformers' modules multiply by q, k and v one after another, and by gate and up; on a small model each call costs
about as much as its arithmetic. Where a module's class is known to be that arithmetic and nothing else, a fused one
takes its place. A pass is compared before and after, and all is put back where it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from explorer.models.attention import CACHE, LAYOUT
from explorer.models.packed import pack
from kernels.tree_attention.inputs import IN_ORDER

_FAMILIES = ("Llama", "Mistral", "Qwen2")
_TOLERANCE = 1e-3  # of the largest hidden value; float32 sums in another order differ by far less


class FusedAttention(nn.Module):
    """Self-attention with one product for queries, keys and values, called as the module that it replaces."""

    def __init__(self, attention: Any, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        self.attend = attend
        self.layer_idx: int = attention.layer_idx
        self.scale: float = attention.scaling
        self.head_dim: int = attention.head_dim
        self.num_heads = attention.q_proj.out_features // attention.head_dim
        self.num_kv_heads = attention.k_proj.out_features // attention.head_dim
        self.qkv = pack(concatenate(attention.q_proj, attention.k_proj, attention.v_proj))
        self.output = pack(attention.o_proj)

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        **options: Any,
    ) -> tuple[Tensor, None]:
        batch, num_rows = hidden_states.shape[:2]  # one sequence, but where costs of a batch are measured
        projected = self.qkv(hidden_states).view(batch, num_rows, -1, self.head_dim)
        heads = projected.transpose(1, 2)  # [B, q + k + v, R, D]
        num_rotated = self.num_heads + self.num_kv_heads
        rotated = _rotate(heads[:, :num_rotated], *position_embeddings)
        query, key, value = rotated[:, : self.num_heads], rotated[:, self.num_heads :], heads[:, num_rotated:]
        cache = options.get(CACHE)
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx)
        mask = None if attention_mask is None else attention_mask[0, 0]
        attended = self.attend(query, key, value, mask, self.scale, options.get(LAYOUT, IN_ORDER))
        return self.output(attended.transpose(1, 2).reshape(batch, num_rows, -1)), None


class FusedMlp(nn.Module):
    """``down(silu(gate(x)) * up(x))`` with one product for gate and up."""

    def __init__(self, mlp: Any) -> None:
        super().__init__()
        self.gate_up = pack(concatenate(mlp.gate_proj, mlp.up_proj))
        self.down = pack(mlp.down_proj)

    def forward(self, inputs: Tensor) -> Tensor:
        gate, up = self.gate_up(inputs).chunk(2, dim=-1)
        output: Tensor = self.down(nn.functional.silu(gate) * up)
        return output


def concatenate(*linears: nn.Linear) -> nn.Linear:
    """One layer whose outputs are theirs, one after another."""
    joined = nn.Linear(linears[0].in_features, sum(layer.out_features for layer in linears), device="meta")
    joined.weight = nn.Parameter(torch.cat([layer.weight.detach() for layer in linears]), requires_grad=False)
    biases = [layer.bias for layer in linears]
    joined.bias = None if biases[0] is None else nn.Parameter(torch.cat([*biases]).detach(), requires_grad=False)
    return joined


def fuse(network: nn.Module, attend: Callable[..., Tensor], probe: Callable[[], Tensor]) -> int:
    """Replace every known module below ``network``; returns how many, 0 where the result would differ.

    attend: a kernel of kernels/tree_attention. probe: some pass through the network, compared before and after.
    """
    expected = probe()
    replaced = [(parent, name, child, _fused(child, attend)) for parent, name, child in _known(network)]
    for parent, name, _, fused in replaced:
        setattr(parent, name, fused)
    difference = float((probe() - expected).abs().max())
    if difference <= _TOLERANCE * max(1.0, float(expected.abs().max())):
        return len(replaced)
    for parent, name, child, _ in replaced:
        setattr(parent, name, child)
    return 0


def _known(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """(parent, name, module) of every module below that a fused one can stand for."""
    for parent in module.modules():
        for name, child in parent.named_children():
            kind = type(child).__name__
            family = next((word for word in _FAMILIES if kind.startswith(word)), None)
            is_silu = getattr(getattr(child, "config", None), "hidden_act", None) == "silu"
            if family and kind.removeprefix(family) in ("Attention", "RMSNorm", "MLP" if is_silu else ""):
                yield parent, name, child


def _fused(module: Any, attend: Callable[..., Tensor]) -> nn.Module:
    kind = type(module).__name__
    if kind.endswith("Attention"):
        return FusedAttention(module, attend)
    if kind.endswith("MLP"):
        return FusedMlp(module)
    norm = nn.RMSNorm(module.weight.shape[0], eps=module.variance_epsilon, device="meta")
    norm.weight = module.weight
    return norm


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: heads [B, h, R, D], cos and sin [1, R, D], halves paired as transformers pairs them."""
    first, second = heads.chunk(2, dim=-1)
    return heads * cos[:, None] + torch.cat([-second, first], dim=-1) * sin[:, None]


@torch.inference_mode()
def probe_decoder(decoder: Any) -> Tensor:
    """Final hidden states of a transformers decoder for a few tokens."""
    ids = torch.arange(min(8, decoder.config.vocab_size), device=decoder.device)[None]
    hidden: Tensor = decoder(input_ids=ids, use_cache=False).last_hidden_state
    return hidden
