"""A target whose decoder layers are on several devices: where each is, and a cache that keeps its part beside it.

accelerate moves states and offloaded weights from device to device; an offloaded layer runs on the main one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from explorer.models.cache import CacheShape, TreeCache
from explorer.models.layer_inputs import decoder_layers

SPLIT = "split"  # the device that means several
OFFLOADED = {"cpu": "main memory", "disk": "disk"}


class Split(NamedTuple):
    """devices: where each decoder layer runs. places: where their weights are kept, each once, in order."""

    devices: tuple[torch.device, ...]
    places: tuple[str, ...]


def split_of(model: Any) -> Split | None:
    """Of a transformers causal LM that accelerate dispatched to several places; None for any other."""
    mapped: dict[str, int | str | torch.device] = getattr(model, "hf_device_map", {})
    if len(set(mapped.values())) < 2:
        return None
    names = {id(module): name for name, module in model.named_modules()}
    main = model.get_output_embeddings().weight.device
    placed = [mapped[names[id(layer)]] for layer in decoder_layers(model.get_decoder())]
    devices = tuple(main if place in OFFLOADED else _device(place) for place in placed)
    words = [OFFLOADED.get(str(place)) or str(_device(place)) for place in placed]
    return Split(devices, tuple(dict.fromkeys(words)))


def _device(place: int | str | torch.device) -> torch.device:
    return torch.device("cuda", place) if isinstance(place, int) else torch.device(place)


class SplitCache(TreeCache):
    """A TreeCache for each device, which holds the keys and values of the layers that run there."""

    def __init__(self, shape: CacheShape, capacity: int, dtype: torch.dtype, devices: Sequence[torch.device]) -> None:
        """devices: of each layer; its rows are moved by the "naive" backend."""
        super().__init__(shape, 0, dtype, devices[0])
        self._layers_on = {device: [i for i, own in enumerate(devices) if own == device] for device in devices}
        self._parts = {
            device: TreeCache(CacheShape(len(layers), shape.num_kv_heads, shape.head_dim), capacity, dtype, device)
            for device, layers in self._layers_on.items()
        }
        self._at = {
            layer: (self._parts[device], index)
            for device, layers in self._layers_on.items()
            for index, layer in enumerate(layers)
        }

    @property
    def capacity(self) -> int:
        """Tokens that fit before the storage has to grow."""
        return min(part.capacity for part in self._parts.values())

    def reserve(self, num_rows: int) -> None:
        """Make room for a pass of ``num_rows`` rows after the committed tokens, on every device."""
        for part in self._parts.values():
            part.reserve(num_rows)
        self.num_pending = num_rows

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """As of TreeCache, on the layer's device."""
        part, index = self._at[layer]
        return part.write(index, key, value)

    def commit(self, rows: Sequence[int]) -> None:
        """As of TreeCache, on every device."""
        for part in self._parts.values():
            part.commit(rows)
        self.length, self.num_pending = self.length + len(rows), 0

    def truncate(self, length: int) -> None:
        """As of TreeCache, on every device."""
        for part in self._parts.values():
            part.truncate(length)
        self.length, self.num_pending = length, 0

    def committed(self) -> Tensor:
        """[layers, 2, kv_heads, length, head_dim] on the first layer's device."""
        found = {device: part.committed() for device, part in self._parts.items()}
        ordered = [(layer, device, i) for device, own in self._layers_on.items() for i, layer in enumerate(own)]
        return torch.stack([found[device][i].to(self._storage.device) for _, device, i in sorted(ordered)])
