"""Noise on a network's matrices, for as long as it is wanted: a target that has moved away from its drafters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from explorer.models.packed import PackedLinear, pack_weight

SEED = 0


@contextmanager
def perturbed(network: nn.Module, size: float, seed: int = SEED) -> Iterator[int]:
    """While it is entered, every linear layer below ``network`` has Gaussian noise on its matrix; yields how many.

    size: the noise's standard deviation, in standard deviations of the matrix itself. The very tensors that were there
    before are put back at the end, whatever happens in between; so nothing is rounded.
    """
    generator = torch.Generator().manual_seed(seed)
    restore: list[Callable[[], None]] = []
    try:
        for layer in network.modules():
            if size and isinstance(layer, PackedLinear | nn.Linear):
                restore.append(_replace(layer, size, generator))
        yield len(restore)
    finally:
        for put_back in restore:
            put_back()


def _replace(layer: PackedLinear | nn.Linear, size: float, generator: torch.Generator) -> Callable[[], None]:
    """Give a layer its noisy matrix; returns what gives it its own one back."""
    if isinstance(layer, PackedLinear):
        own, noisy = layer.packed, pack_weight(_noisy(layer.unpacked(), size, generator))
        layer.packed = noisy
        return partial(setattr, layer, "packed", own)
    parameter = layer.weight
    layer.weight = nn.Parameter(_noisy(parameter.detach(), size, generator), requires_grad=False)
    return partial(setattr, layer, "weight", parameter)


def _noisy(weight: Tensor, size: float, generator: torch.Generator) -> Tensor:
    """A copy with noise; drawn on the CPU in float32, so that every device sees the same."""
    noise = torch.randn(weight.shape, generator=generator)
    spread = float(weight.float().std())
    return weight + (size * spread * noise).to(weight.device, weight.dtype)
