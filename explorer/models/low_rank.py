"""Low-rank changes to a target's matrices (LoRA), beside it while they are trained, inside its weights to decode.

Source: E. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, arXiv 2106.09685, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from explorer.models.layer_inputs import decoder_layers

Sizes = tuple[int, int]  # of a matrix: inputs, outputs


class LowRank(nn.Module):
    """``scale * up(down(x))``: zero until it is trained, because ``up`` begins at zero."""

    def __init__(self, sizes: Sizes, rank: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.down = nn.Parameter(torch.empty(rank, sizes[0]))
        self.up = nn.Parameter(torch.zeros(sizes[1], rank))
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        rows = inputs.to(self.down.dtype)
        change = nn.functional.linear(nn.functional.linear(rows, self.down), self.up)
        return (self.scale * change).to(inputs.dtype)

    def product(self) -> Tensor:
        """The change of the whole matrix, [outputs, inputs]."""
        return self.scale * (self.up @ self.down)


class TargetAdapter(nn.Module):
    """A LowRank for every linear layer inside a decoder's layers, below the same names.

    The state dict has ``{layer}.{path of the linear layer}.down`` [rank, inputs] and ``.up`` [outputs, rank].
    """

    def __init__(self, sizes: Mapping[str, Sizes], rank: int, scale: float) -> None:
        """sizes: as of ``matrix_sizes``."""
        super().__init__()
        for path, size in sizes.items():
            *parents, last = path.split(".")
            place: nn.Module = self
            for name in parents:
                if name not in dict(place.named_children()):
                    place.add_module(name, nn.Module())
                place = place.get_submodule(name)
            place.add_module(last, LowRank(size, rank, scale))

    def changes(self) -> dict[str, LowRank]:
        """The low-rank changes by the path of the linear layer they belong to."""
        return {name: module for name, module in self.named_modules() if isinstance(module, LowRank)}


def linears_of(decoder: nn.Module) -> dict[str, nn.Linear]:
    """Every linear layer inside the layers of a transformers decoder, by its path from their list."""
    modules = decoder_layers(decoder).named_modules()
    return {name: module for name, module in modules if isinstance(module, nn.Linear)}


def matrix_sizes(decoder: nn.Module) -> dict[str, Sizes]:
    """What an adapter of this decoder is made of: path of a linear layer -> (inputs, outputs)."""
    return {name: (linear.in_features, linear.out_features) for name, linear in linears_of(decoder).items()}


@contextmanager
def adapted(decoder: nn.Module, adapter: TargetAdapter) -> Iterator[None]:
    """While it is entered, passes of ``decoder`` are those of the adapted target; outside, the original's."""
    linears = linears_of(decoder)
    handles = [linears[path].register_forward_hook(partial(_add, change)) for path, change in adapter.changes().items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def merge(decoder: nn.Module, adapter: TargetAdapter) -> None:
    """Add the changes to the decoder's own weights, summed in float32 and rounded once; a pass then costs no more."""
    linears = linears_of(decoder)
    with torch.no_grad():
        for path, change in adapter.changes().items():
            weight = linears[path].weight
            weight.copy_(weight.float() + change.product().float().to(weight.device))


def _add(change: LowRank, _linear: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    return output + change(inputs[0])
