"""Masks as bits: there and back for every word size, and shapes that cannot be are refused."""

from __future__ import annotations

import pytest
import torch

from kernels.tree_attention.inputs import check_mask, pack_mask, unpack_mask


@pytest.mark.parametrize("num_keys", [1, 31, 32, 33, 63, 64, 65, 128, 129])
def test_there_and_back(num_keys: int) -> None:
    mask = torch.rand(5, num_keys, generator=torch.Generator().manual_seed(num_keys)) < 0.5
    mask[0], mask[1] = True, False
    words = pack_mask(mask)
    assert words.dtype == torch.int64
    assert words.shape == (5, -(-num_keys // 64))
    assert torch.equal(unpack_mask(words, num_keys), mask)


def test_each_bit_is_where_it_is_said_to_be() -> None:
    for key in range(130):
        mask = torch.zeros(1, 130, dtype=torch.bool)
        mask[0, key] = True
        words = [word % 2**64 for word in pack_mask(mask)[0].tolist()]
        assert words == [1 << key % 64 if word == key // 64 else 0 for word in range(3)]


def test_how_many_keys_a_mask_speaks_of() -> None:
    assert check_mask(None, 7) == 7
    assert check_mask(torch.zeros(7, 1, dtype=torch.int64), 7, 20) == 7
    assert check_mask(torch.zeros(7, 12, dtype=torch.bool), 7, 20) == 12


@pytest.mark.parametrize(
    ("mask", "num_keys"),
    [
        (torch.zeros(6, 9, dtype=torch.bool), 20),
        (torch.zeros(7, 21, dtype=torch.bool), 20),
        (torch.zeros(7, dtype=torch.bool), 20),
        (torch.zeros(7, 2, dtype=torch.int64), 20),
        (torch.zeros(6, 1, dtype=torch.int64), 20),
        (None, 6),
    ],
)
def test_shapes_that_cannot_be(mask: torch.Tensor | None, num_keys: int) -> None:
    with pytest.raises(ValueError, match="mask"):
        check_mask(mask, 7, num_keys)
