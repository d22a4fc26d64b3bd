"""A whole decoder of well-known layers as one plain loop over rows, for a CPU.

Between two products of a small model, transformers' own loop and PyTorch's composed norms and attention cost almost as
much as the products: this loop does the same with few small operations. It is only for decoders whose attention, MLP
and norms explorer.models.fused knows, and only where a pass with a tree agrees with the decoder's own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.models.attention import LAYOUT
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.fused import FAMILIES, TOLERANCE, FusedAttention, FusedMlp
from kernels.tree_attention.inputs import IN_ORDER, KeyLayout

FEW_ROWS = 64  # up to so many rows, attention is three products; longer passes take the kernel, which needs less memory


class FusedDecoder(nn.Module):
    """Embedding, layers and final norm, called as the decoder that it stands for; batch 1, with a cache."""

    def __init__(self, decoder: Any, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        self._embedding: Tensor = decoder.embed_tokens.weight
        self._rotary = decoder.rotary_emb
        self._layers = [_Layer(layer, attend) for layer in decoder.layers]
        self._norm = decoder.norm

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        attention_mask: Tensor | None,
        cache: TreeCache,
        use_cache: bool = True,
        **options: Any,
    ) -> SimpleNamespace:
        """input_ids, position_ids [1, R], attention_mask [1, 1, R, keys] bool or None; last_hidden_state [1, R, H]."""
        rows = functional.embedding(input_ids[0], self._embedding)
        cos, sin = (table[0, :, None] for table in self._rotary(rows, position_ids))  # [R, 1, D]
        mask = None if attention_mask is None else attention_mask[0, 0]
        layout = options.get(LAYOUT, IN_ORDER)
        bias = _bias(mask, len(rows), layout)
        for layer in self._layers:
            rows = layer(rows, (cos, sin), (mask, bias), cache, layout)
        return SimpleNamespace(last_hidden_state=_norm(rows, self._norm)[None])


class _Layer:
    """One layer: its fused modules, and the loop's own norm and attention between them."""

    def __init__(self, layer: Any, attend: Callable[..., Tensor]) -> None:
        self._norms: tuple[Any, Any] = (layer.input_layernorm, layer.post_attention_layernorm)
        self._attention: FusedAttention = layer.self_attn
        self._mlp: FusedMlp = layer.mlp
        self._attend = attend

    def __call__(
        self,
        rows: Tensor,
        rotation: tuple[Tensor, Tensor],
        seen: tuple[Tensor | None, Tensor | None],
        cache: TreeCache,
        layout: KeyLayout,
    ) -> Tensor:
        """rows [R, H], rotation cos and sin [R, 1, D], seen: mask and its bias; returns [R, H], in place."""
        attention = self._attention
        heads = attention.qkv(_norm(rows, self._norms[0])).view(len(rows), -1, attention.head_dim)  # [R, q + k + v, D]
        num_rotated = attention.num_heads + attention.num_kv_heads
        rotated = _rotate(heads[:, :num_rotated], *rotation).transpose(0, 1)[None]  # [1, q + k, R, D]
        query, key = rotated[:, : attention.num_heads], rotated[:, attention.num_heads :]
        keys, values = cache.write(attention.layer_idx, key, heads[:, num_rotated:].transpose(0, 1)[None])
        if seen[1] is not None:
            attended = _attend_few(query[0], keys[0], values[0], seen[1], attention.scale)
        else:
            attended = self._attend(query, keys, values, seen[0], attention.scale, layout)[0].transpose(0, 1)
        rows = rows.add_(attention.output(attended.reshape(len(rows), -1)))
        return rows.add_(self._mlp(_norm(rows, self._norms[1])))


def _norm(rows: Tensor, norm: Any) -> Tensor:
    """RMSNorm; PyTorch composes its own of twice as many operations on a CPU."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    scale = length.square_().mul_(1 / rows.shape[-1]).add_(norm.eps).rsqrt_()
    return rows.mul(scale).mul_(norm.weight)


def _rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions: heads [R, h, D], halves paired as transformers pairs them."""
    first, second = heads.chunk(2, dim=-1)
    return (heads * cos).addcmul_(torch.cat([-second, first], dim=-1), sin)


def _bias(mask: Tensor | None, num_rows: int, layout: KeyLayout) -> Tensor | None:
    """What is added to the scores of few rows, [R, keys] or [1, 1]; None where the kernel takes the pass."""
    if num_rows > FEW_ROWS or layout is not IN_ORDER or (mask is None and num_rows > 1):
        return None
    if mask is None:
        return torch.zeros(1, 1)
    return torch.zeros(mask.shape).masked_fill_(mask.logical_not(), -torch.inf)


def _attend_few(query: Tensor, keys: Tensor, values: Tensor, bias: Tensor, scale: float) -> Tensor:
    """Attention as products: query [heads, R, D], keys, values [kv_heads, L, D]; returns [R, heads, D].

    The heads that share keys are rows of one product.
    """
    num_heads, num_rows, dim = query.shape
    num_kv = len(keys)
    grouped = query.reshape(num_kv, -1, dim)  # [kv, group * R, D]
    tiled = bias.expand(num_heads // num_kv, num_rows, bias.shape[-1]).reshape(1, -1, bias.shape[-1])
    scores = torch.baddbmm(tiled, grouped, keys.transpose(1, 2), alpha=scale).softmax(dim=-1)
    attended = torch.bmm(scores, values)
    return attended.view(num_heads, num_rows, dim).transpose(0, 1)


def fuse_decoder(decoder: Any, attend: Callable[..., Tensor], shape: CacheShape) -> Any:
    """The loop for a decoder whose modules are fused; the decoder itself where it is another or would differ."""
    if not _is_known(decoder):
        return decoder
    loop = FusedDecoder(decoder, attend)
    expected, got = (_probe(each, shape, decoder.embed_tokens.weight.shape[0]) for each in (decoder, loop))
    difference = float((got - expected).abs().max())
    return loop if difference <= TOLERANCE * max(1.0, float(expected.abs().max())) else decoder


def _is_known(decoder: Any) -> bool:
    if type(decoder).__name__ not in [family + "Model" for family in FAMILIES]:
        return False
    return all(
        type(layer).__name__.endswith("DecoderLayer")
        and isinstance(layer.self_attn, FusedAttention)
        and isinstance(layer.mlp, FusedMlp)
        and isinstance(layer.input_layernorm, nn.RMSNorm)
        and isinstance(layer.post_attention_layernorm, nn.RMSNorm)
        for layer in decoder.layers
    ) and isinstance(decoder.norm, nn.RMSNorm)


@torch.inference_mode()
def _probe(decoder: Any, shape: CacheShape, vocab_size: int) -> Tensor:
    """Hidden states of a short prompt pass, a pass of three rows with a branching mask, and one of a single row."""
    weight = torch.empty(0)
    cache = TreeCache(shape, 16, weight.dtype, weight.device)
    found = []
    for num_rows, mask in ((5, None), (3, _branch(5)), (1, None)):
        cache.reserve(num_rows)
        tokens = torch.arange(num_rows)[None] % vocab_size
        positions = torch.arange(cache.length, cache.length + num_rows)[None]
        output = decoder(
            input_ids=tokens,
            position_ids=positions,
            attention_mask=mask,
            cache=cache,
            use_cache=True,
            **{LAYOUT: IN_ORDER},
        )
        found.append(output.last_hidden_state[0])
        cache.commit(range(num_rows if mask is None else 1))
    return torch.cat(found)


def _branch(prefix: int) -> Tensor:
    """Two siblings below a root, as a mask [1, 1, 3, prefix + 3]."""
    tree = torch.tensor([[True, False, False], [True, True, False], [True, False, True]])
    return functional.pad(tree, (prefix, 0), value=True)[None, None]
