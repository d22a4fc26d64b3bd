"""The hidden states that enter chosen decoder layers, kept while a pass runs: what EAGLE-3 reads besides tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn


@contextmanager
def layer_inputs(decoder: nn.Module, entered: dict[int, Tensor]) -> Iterator[None]:
    """While it is entered, a pass of ``decoder`` leaves at each key of ``entered``, a layer, what enters that layer.

    The states [B, R, H] are those before the layer's own norm (the residual stream), as the pass computed them.
    decoder: a transformers decoder. Without keys nothing is touched and a pass costs what it always does.
    """
    layers = decoder_layers(decoder) if entered else nn.ModuleList()
    handles = [
        layers[layer].register_forward_pre_hook(partial(_keep, entered, layer), with_kwargs=True) for layer in entered
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def decoder_layers(decoder: nn.Module) -> nn.ModuleList:
    """The decoder's layers in their order; transformers calls them ``layers``, older models otherwise."""
    return next(child for child in decoder.children() if isinstance(child, nn.ModuleList))


def _keep(
    entered: dict[int, Tensor], layer: int, _module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    entered[layer] = arguments[0] if arguments else named["hidden_states"]
