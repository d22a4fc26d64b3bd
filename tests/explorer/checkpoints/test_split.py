"""Layers go where there is room, GPUs first and evenly; what is no layer stays together."""

from __future__ import annotations

import pytest
import torch
from accelerate.utils import check_device_map

from explorer.checkpoints.split import Place, device_map, spread
from tests.support.tiny import tiny_model


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        ({0: 100.0, 1: 100.0, "cpu": 100.0}, [0, 0, 0, 1, 1, 1]),
        ({0: 21.0, 1: 100.0, "cpu": 100.0}, [0, 0, 1, 1, 1, 1]),
        ({0: 100.0, 1: 21.0, "cpu": 100.0}, [0, 0, 0, 0, 1, 1]),
        ({0: 21.0, 1: 12.0, "cpu": 25.0}, [0, 0, 1, "cpu", "cpu", "disk"]),
        ({0: -5.0, "cpu": 1000.0}, ["cpu"] * 6),
        ({"cpu": 35.0}, ["cpu", "cpu", "cpu", "disk", "disk", "disk"]),
    ],
    ids=str,
)
def test_layers_are_spread_evenly_and_then_by_room(free: dict[Place, float], expected: list[Place]) -> None:
    assert spread(6, 10, free) == expected


def test_a_map_covers_the_model_and_keeps_all_but_layers_on_the_first_place() -> None:
    model = tiny_model(num_hidden_layers=4)
    layer = sum(parameter.numel() for parameter in model.model.layers[0].parameters()) * 4
    rest = sum(parameter.numel() for parameter in model.parameters()) * 4 - 4 * layer
    memory: dict[Place, int] = {0: 2 * (rest + layer), 1: 2 * layer, "cpu": 2 * layer}
    found = device_map(model, torch.float32, memory)
    check_device_map(model, found)
    layers = {name: place for name, place in found.items() if name.startswith("model.layers.")}
    assert list(layers) == [f"model.layers.{index}" for index in range(4)]
    assert list(layers.values()) == [0, 0, 1, "cpu"]
    assert {place for name, place in found.items() if name not in layers} == {0}


def test_what_one_place_holds_is_not_split() -> None:
    assert device_map(tiny_model(), torch.float32, {"cpu": 10**9}) == {"": "cpu"}
    assert device_map(tiny_model(), torch.float32).keys() == {""}  # this machine holds it
