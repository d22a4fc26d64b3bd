"""Targets larger than one GPU: which decoder layer goes where when a target is loaded on ``split``.

Everything that is no decoder layer stays on one device, the first GPU or the CPU, and so do drafters. Layers are spread
evenly over the GPUs; what these do not hold waits in main memory, and what that does not hold stays in the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from explorer.models.layer_inputs import decoder_layers

Place = int | str  # a GPU's number, "cpu" or "disk", as accelerate calls them
_USABLE = 0.85  # of free memory: the rest is for keys, values and activations


def device_map(skeleton: Any, dtype: torch.dtype, memory: Mapping[Place, int] | None = None) -> dict[str, Place]:
    """Module name -> place for every module of a transformers causal LM, as ``from_pretrained`` wants it.

    skeleton: the model without its memory. memory: free bytes of each place, the GPUs before "cpu"; None: this
    machine's. One place alone where it holds everything.
    """
    if memory is None:
        from accelerate.utils import get_max_memory

        memory = get_max_memory()
    layers = decoder_layers(skeleton.get_decoder())
    main = next(iter(memory))
    rest = _num_bytes(skeleton, dtype) - _num_bytes(layers, dtype)
    free = {place: _USABLE * found - (rest if place == main else 0) for place, found in memory.items()}
    places = spread(len(layers), max(_num_bytes(layer, dtype) for layer in layers), free)
    if set(places) == {main}:
        return {"": main}
    return _map(skeleton, layers, places, main)


def spread(num_layers: int, size: int, free: Mapping[Place, float]) -> list[Place]:
    """The place of each of so many layers of ``size`` bytes: evenly on the GPUs, then "cpu", then "disk"."""
    fits = {place: max(0, math.floor(found / size)) for place, found in free.items()}
    gpus = [place for place in free if place != "cpu"]
    counts, left = dict.fromkeys(free, 0), num_layers
    for index, place in enumerate(gpus):
        counts[place] = min(fits[place], math.ceil(left / (len(gpus) - index)))
        left -= counts[place]
    for place in free:  # a GPU may be smaller than its share, and "cpu" comes last
        more = min(left, fits[place] - counts[place])
        counts[place] += more
        left -= more
    placed: list[Place] = [place for place, count in counts.items() for _ in range(count)]
    return placed + ["disk"] * left


def _map(
    module: nn.Module, layers: nn.ModuleList, places: list[Place], main: Place, prefix: str = ""
) -> dict[str, Place]:
    found: dict[str, Place] = {}
    for name, child in module.named_children():
        if child is layers:
            found |= {f"{prefix}{name}.{index}": place for index, place in enumerate(places)}
        elif any(inner is layers for inner in child.modules()):
            found |= _map(child, layers, places, main, f"{prefix}{name}.")
        else:
            found[prefix + name] = main
    return found


def _num_bytes(module: nn.Module, dtype: torch.dtype) -> int:
    return sum(parameter.numel() for parameter in module.parameters()) * dtype.itemsize
