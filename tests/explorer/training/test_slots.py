"""Slots decode as if each were alone, whoever else is dropped."""

from __future__ import annotations

import torch

from explorer.training.slots import SlotDecoder
from tests.support.tiny import tiny_model


def whole(tokens: list[int]) -> torch.Tensor:
    model = tiny_model()
    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens])).logits[0]


def test_slots_equal_whole_passes() -> None:
    rows = [[5, 9, 2, 30, 8, 8], [7, 7, 1, 4, 60, 3], [10, 11, 12, 13, 14, 15]]
    decoder = SlotDecoder(tiny_model(), 3, capacity=16)
    for position in range(3):
        logits = decoder.step(torch.tensor([row[position] for row in rows]), [0, 2])
        assert torch.allclose(logits[1], whole(rows[2])[position], atol=1e-4)
    decoder.keep([0, 2])
    for position in range(3, 6):
        logits = decoder.step(torch.tensor([rows[0][position], rows[2][position]]), [0, 1])
        assert torch.allclose(logits[0], whole(rows[0])[position], atol=1e-4)
        assert torch.allclose(logits[1], whole(rows[2])[position], atol=1e-4)


def test_a_slot_that_is_full_may_be_fed_on() -> None:
    decoder = SlotDecoder(tiny_model(), 1, capacity=3)
    for token in range(5):
        decoder.step(torch.tensor([token]), [0])
    assert decoder.longest == 3
