"""Fused layers run as one loop of operators, without a module call.

A pass of a small model over a few rows makes some five hundred calls of modules and operators, and each costs
microseconds whatever it computes. Here a layer is twenty operators: sums join the product before them, the norm is two
reductions instead of seven operators, and rotary positions are applied in place. It reads the fused modules' own
weights, so whatever replaces those (explorer.models.perturbation) holds here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from explorer.models.fused import FusedAttention, FusedMlp, probe_decoder
from explorer.models.packed import PackedLinear
from kernels.tree_attention.inputs import IN_ORDER, KeyLayout

Write = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]  # (layer, keys, values [B, kv_heads, R, D])
_DECODERS = ("LlamaModel", "MistralModel", "Qwen2Model")
_TOLERANCE = 1e-3  # of the largest hidden value, as where modules are fused


class _Norm(NamedTuple):
    """RMS norm of n numbers: ``x * w / sqrt(mean(x^2) + eps)`` is ``x / hypot(|x|, sqrt(n eps)) * (w sqrt(n))``."""

    weight: Tensor  # [n] w sqrt(n)
    floor: Tensor  # [] sqrt(n eps)

    @classmethod
    def of(cls, norm: nn.RMSNorm) -> _Norm:
        root = norm.normalized_shape[0] ** 0.5
        return cls(norm.weight.detach() * root, torch.tensor((norm.eps or 0.0) ** 0.5 * root))

    def __call__(self, rows: Tensor) -> Tensor:
        lengths = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
        return torch.div(rows, torch.hypot(lengths, self.floor, out=lengths)).mul_(self.weight)


class _Pass(NamedTuple):
    """What all layers of one pass share: B sequences of R rows; the rest as of FlatLayers."""

    batch: int
    num_rows: int
    turn: _Turn
    mask: Tensor | None
    write: Write | None
    layout: KeyLayout


class _Layer(NamedTuple):
    """Attention, the norm after it and the MLP; what comes before attention is its caller's."""

    attention: Any
    norm: _Norm
    mlp: Any

    @classmethod
    def of(cls, layer: Any) -> _Layer:
        return cls(layer.self_attn, _Norm.of(layer.post_attention_layernorm), layer.mlp)

    def run(self, index: int, rows: Tensor, inputs: Tensor, shared: _Pass) -> Tensor:
        """[B * R, H] for the residual ``rows`` [B * R, H]; attention reads ``inputs``. index: the cache's layer."""
        attention = self.attention
        heads = _product(inputs, attention.qkv).view(shared.batch, shared.num_rows, -1, attention.head_dim)
        query, key, value = shared.turn.split(heads, attention.num_heads, attention.num_kv_heads)
        if shared.write is not None:
            key, value = shared.write(index, key, value)
        attended = attention.attend(query, key, value, shared.mask, attention.scale, shared.layout)
        rows = _product_plus(attended.transpose(1, 2).reshape(len(rows), -1), attention.output, rows)
        gate, up = _product(self.norm(rows), self.mlp.gate_up).chunk(2, dim=-1)
        return _product_plus(nn.functional.silu(gate).mul_(up), self.mlp.down, rows)


class FlatLayers:
    """Decoder layers whose attention, MLP and norms were replaced by packed fused ones (explorer.models.fused)."""

    def __init__(self, layers: Iterable[Any]) -> None:
        """A layer's first norm may be ``nn.Identity``. Check ``can_run`` before."""
        self._layers = [(_norm_of(layer.input_layernorm), _Layer.of(layer)) for layer in layers]

    @staticmethod
    def can_run(layers: Iterable[Any]) -> bool:
        """Whether every module of these layers is one that the loop stands for."""
        return all(map(_is_known, layers)) and hasattr(torch.ops.mkldnn._linear_pointwise, "binary")

    def __call__(
        self,
        hidden: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: Tensor | None,
        write: Write | None,
        layout: KeyLayout,
        entered: dict[int, Tensor] | None = None,
    ) -> Tensor:
        """[B, R, H] after the last layer for ``hidden`` [B, R, H], which is left as it is.

        rotation: cos and sin [1 or B, R, D]. mask [R, C] as of the attention kernel; None is causal. write: the
        cache's; takes a layer's new keys and values and returns all of them. None: there are no others. entered: its
        keys are layers, each gets the [B, R, H] that enters it (explorer.models.layer_inputs).
        """
        shared = _Pass(hidden.shape[0], hidden.shape[1], _Turn(*rotation), mask, write, layout)
        rows = hidden.reshape(-1, hidden.shape[-1])
        for index, (norm, layer) in enumerate(self._layers):
            if entered and index in entered:
                entered[index] = rows.view(hidden.shape)
            rows = layer.run(index, rows, norm(rows), shared)
        return rows.view(hidden.shape)


class FlatMidlayer:
    """EAGLE-3's layer (explorer.models.eagle3_layer), treated as those of FlatLayers were."""

    def __init__(self, layer: Any) -> None:
        """Check ``can_run`` before."""
        self._norms = _Norm.of(layer.input_layernorm), _Norm.of(layer.hidden_norm)
        self._layer = _Layer.of(layer)
        self._is_residual_normed: bool = layer.norm_before_residual

    @staticmethod
    def can_run(layer: Any) -> bool:
        """Whether every module of it is one that this stands for."""
        return FlatLayers.can_run([layer]) and isinstance(layer.hidden_norm, nn.RMSNorm)

    def __call__(
        self,
        embedded: Tensor,
        hidden: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: Tensor | None,
        write: Write | None,
        layout: KeyLayout,
    ) -> Tensor:
        """[B, R, H] from embeddings and hidden states [B, R, H] each, which are left as they are; as of FlatLayers."""
        shared = _Pass(hidden.shape[0], hidden.shape[1], _Turn(*rotation), mask, write, layout)
        # A beam repeats one hidden state without copying it; the kernels want it written out.
        sides = [side.reshape(-1, side.shape[-1]).contiguous() for side in (embedded, hidden)]
        normed = [norm(side) for norm, side in zip(self._norms, sides, strict=True)]
        residual = (normed if self._is_residual_normed else sides)[1]
        return self._layer.run(0, residual, torch.cat(normed, dim=-1), shared).view(hidden.shape)


class _Turn:
    """Rotary positions of a pass, halves paired as transformers pairs them."""

    def __init__(self, cos: Tensor, sin: Tensor) -> None:
        self._half = sin.shape[-1] // 2
        self._cos = cos[:, :, None]
        self._sin = sin[:, :, None, self._half :]
        self._minus_sin = -sin[:, :, None, : self._half]

    def split(self, heads: Tensor, num_heads: int, num_kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
        """Turned queries and keys, and values, [B, heads, R, D] each, of projected heads [B, R, q + k + v, D]."""
        half, num_turned = self._half, num_heads + num_kv_heads
        plain = heads[:, :, :num_turned]
        turned = plain * self._cos
        turned[..., :half].addcmul_(plain[..., half:], self._minus_sin)
        turned[..., half:].addcmul_(plain[..., :half], self._sin)
        turned = turned.transpose(1, 2)
        return turned[:, :num_heads], turned[:, num_heads:], heads[:, :, num_turned:].transpose(1, 2)


class FlatDecoder:
    """A whole transformers decoder: embedding, layers, final norm."""

    def __init__(self, decoder: Any) -> None:
        self._embedding = decoder.embed_tokens
        self._rotary = decoder.rotary_emb
        self._layers = FlatLayers(decoder.layers)
        self._norm = _Norm.of(decoder.norm)

    def __call__(
        self,
        tokens: Tensor,
        positions: Tensor,
        mask: Tensor | None,
        write: Write | None,
        layout: KeyLayout,
        entered: dict[int, Tensor] | None = None,
    ) -> Tensor:
        """Hidden states [B, R, H] after the final norm of tokens [B, R] at positions [R], the same in all sequences."""
        hidden = nn.functional.embedding(tokens, self._embedding.weight)
        return self._norm(self._layers(hidden, self._rotary(hidden, positions[None]), mask, write, layout, entered))


@torch.inference_mode()
def flatten(decoder: Any, probe: Callable[[Any], Tensor] = probe_decoder) -> FlatDecoder | None:
    """The loop for a decoder that ``fuse`` and ``pack_linears`` have treated; None where it would not be the same.

    probe: hidden states [1, n, H] of the tokens 0..n-1, which are compared.
    """
    if type(decoder).__name__ not in _DECODERS or not isinstance(decoder.norm, nn.RMSNorm):
        return None
    if not FlatLayers.can_run(decoder.layers):
        return None
    flat, expected = FlatDecoder(decoder), probe(decoder)
    tokens = torch.arange(expected.shape[1])
    got = flat(tokens[None], tokens, None, None, IN_ORDER)
    bound = _TOLERANCE * max(1.0, float(expected.abs().max()))
    return flat if float((got - expected).abs().max()) <= bound else None


def _is_known(layer: Any) -> bool:
    attention, mlp = layer.self_attn, layer.mlp
    return (
        isinstance(layer.input_layernorm, nn.RMSNorm | nn.Identity)
        and isinstance(layer.post_attention_layernorm, nn.RMSNorm)
        and isinstance(attention, FusedAttention)
        and isinstance(mlp, FusedMlp)
        and all(isinstance(part, PackedLinear) for part in (attention.qkv, attention.output, mlp.gate_up, mlp.down))
    )


def _norm_of(module: nn.RMSNorm | nn.Identity) -> _Norm | nn.Identity:
    return _Norm.of(module) if isinstance(module, nn.RMSNorm) else module


def _product(rows: Tensor, linear: PackedLinear) -> Tensor:
    output: Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, linear.packed, linear.bias, "none", [], "")
    return output


def _product_plus(rows: Tensor, linear: PackedLinear, summand: Tensor) -> Tensor:
    output: Tensor = torch.ops.mkldnn._linear_pointwise.binary(rows, summand, linear.packed, linear.bias, "add")
    return output
