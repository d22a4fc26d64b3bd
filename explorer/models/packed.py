"""Linear layers with weights laid out once for the CPU's matrix kernels.

PyTorch lays a float32 weight out anew for every small product; oneDNN can keep it laid out, which makes a pass over 8
to 16 rows cost little more than one over a single row: the case that verification lives on. The operators are private
to PyTorch, so they are looked for, checked on every layer, and left alone where anything differs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_HINT_ROWS = 8  # the layout oneDNN picks for 8 rows was measured good from 1 to 64
_TOLERANCE = 1e-4


class PackedLinear(nn.Module):
    """``x @ weight.T + bias`` for float32 inputs [..., in] on a CPU; the weight is kept in oneDNN's own layout."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features = linear.in_features
        self.out_features = linear.out_features
        self.bias = None if linear.bias is None else linear.bias.detach()
        self._packed = pack_weight(linear.weight.detach())

    @property
    def packed(self) -> Tensor:
        """The weight as it is kept; give it back through the setter to restore it bit by bit."""
        return self._packed

    @packed.setter
    def packed(self, packed: Tensor) -> None:
        self._packed = packed

    def unpacked(self) -> Tensor:
        """The weight [out, in] in the usual layout, a copy."""
        return self._packed.to_dense()

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.reshape(-1, self.in_features)
        output: Tensor = torch.ops.mkldnn._linear_pointwise(rows, self._packed, self.bias, "none", [], "")
        return output.view(*inputs.shape[:-1], self.out_features)


def pack_weight(weight: Tensor) -> Tensor:
    """A float32 weight [out, in] in oneDNN's own layout."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, _HINT_ROWS)
    return packed


def pack(linear: nn.Linear) -> nn.Module:
    """A packed copy of the layer, or the layer itself where packing is not available or does not agree with it."""
    if not is_packable(linear):
        return linear
    packed = PackedLinear(linear)
    probe = torch.linspace(-1, 1, 3 * linear.in_features).view(3, -1)
    with torch.inference_mode():
        expected, got = linear(probe), packed(probe)
    scale = max(1.0, float(expected.abs().max()))
    return packed if float((expected - got).abs().max()) <= _TOLERANCE * scale else linear


def pack_linears(module: nn.Module) -> int:
    """Replace every linear layer below ``module`` by its packed copy (the original is freed); returns how many."""
    count = 0
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            packed = pack(child)
            count += packed is not child
            setattr(module, name, packed)
        else:
            count += pack_linears(child)
    return count


def is_packable(linear: nn.Linear) -> bool:
    """Whether this layer lies in float32 on a CPU whose PyTorch has the operators."""
    weight = linear.weight
    has_operators = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(
        torch.ops.mkldnn, "_linear_pointwise"
    )
    return (
        has_operators
        and torch.backends.mkldnn.is_available()
        and weight.device.type == "cpu"
        and weight.dtype == torch.float32
    )
