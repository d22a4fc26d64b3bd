"""What both implementations are handed beside queries, keys and values: the mask as bits, and where the keys lie."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

WORD_BITS = 64


class KeyLayout(NamedTuple):
    """Where the keys and values of a pass lie; without either field they lie in order and the last is the newest.

    slots: [L] int32 or int64; the key of position i lies at index ``slots[i]``. prefix_len: [1] int32 on the same
    device: how many keys precede those that the mask speaks of, for passes whose launch must not depend on it; the
    keys (or slots) handed in may then be more than are used.
    """

    slots: Tensor | None = None
    prefix_len: Tensor | None = None


IN_ORDER = KeyLayout()


def pack_mask(mask: Tensor) -> Tensor:
    """[R, C] bool to [R, W] int64 words: bit j % 64 of word j // 64 says whether a row may look at key j of the C."""
    num_rows, num_keys = mask.shape
    num_words = max(1, -(-num_keys // WORD_BITS))
    bits = torch.zeros(num_rows, num_words * WORD_BITS, dtype=torch.int64, device=mask.device)
    bits[:, :num_keys] = mask
    shifts = torch.arange(WORD_BITS, device=mask.device)
    return (bits.view(num_rows, num_words, WORD_BITS) << shifts).sum(dim=-1)  # bit 63 is the sign; sums wrap


def unpack_mask(words: Tensor, num_keys: int) -> Tensor:
    """The [R, num_keys] bool mask of [R, W] words."""
    shifts = torch.arange(WORD_BITS, device=words.device)
    return ((words[:, :, None] >> shifts) & 1).bool().flatten(1)[:, :num_keys]


def check_mask(mask: Tensor | None, num_rows: int, num_keys: int | None = None) -> int:
    """How many of the last keys a mask speaks of; ValueError for a shape that cannot be.

    None (causal) and words speak of the rows themselves, a bool mask [R, C] of the last C. num_keys: of the pass,
    None where the launch does not know it.
    """
    if mask is None:
        num_tail = num_rows
    elif mask.dtype == torch.int64:
        num_tail = num_rows
        if mask.shape != (num_rows, max(1, -(-num_rows // WORD_BITS))):
            raise ValueError(f"mask words are {tuple(mask.shape)} for {num_rows} rows")
    else:
        num_tail = mask.shape[-1]
        if mask.ndim != 2 or mask.shape[0] != num_rows:
            raise ValueError(f"mask is {tuple(mask.shape)}, expected ({num_rows}, at most {num_keys})")
    if num_keys is not None and num_tail > num_keys:
        raise ValueError(f"mask is for the last {num_tail} keys, expected at most {num_keys}")
    return num_tail
