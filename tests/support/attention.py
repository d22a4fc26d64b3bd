"""Random attention inputs for both implementations, with whatever must not be read set to nan."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.tree_attention.inputs import IN_ORDER, KeyLayout, pack_mask
from kernels.tree_attention.naive import tree_attention

NAN = float("nan")
# Largest difference from the reference in float64 (values near 1): one rounding of the result, and of the weights.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@dataclass(frozen=True)
class Case:
    """A pass: its shape and dtype, the kind of mask, and where keys lie ("device": a length there)."""

    rows: int = 5
    prefix: int = 7
    dim: int = 64
    heads: tuple[int, int] = (4, 2)
    dtype: torch.dtype = torch.float32
    mask: str = "words"
    keys: str = "order"
    device: str = "cpu"

    def __str__(self) -> str:
        dtype, heads = str(self.dtype).removeprefix("torch."), "x".join(map(str, self.heads))
        return f"{self.rows}r-{self.prefix}p-{self.dim}d-{heads}h-{dtype}-{self.mask}-{self.keys}"


@dataclass(frozen=True)
class Inputs:
    """The arguments of tree_attention but the scale."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None
    layout: KeyLayout

    def reference(self, scale: float) -> Tensor:
        """The reference's answer in float64."""
        key, value = (tensor.double().nan_to_num() for tensor in (self.key, self.value))
        return tree_attention(self.query.double(), key, value, self.mask, scale, self.layout)


def ancestors(num_rows: int, generator: torch.Generator) -> Tensor:
    """[R, R] bool: the mask of a random tree."""
    mask = torch.eye(num_rows, dtype=torch.bool)
    for row in range(1, num_rows):
        mask[row] |= mask[int(torch.randint(row, (), generator=generator))]
    return mask


def make_inputs(case: Case, seed: int = 0) -> Inputs:
    """Inputs of a case: queries as a strided view, keys as a view of a larger storage that holds nan elsewhere."""
    generator = torch.Generator().manual_seed(seed)
    num_keys = case.prefix + case.rows
    query = torch.randn(1, case.rows, case.heads[0], case.dim, generator=generator).to(case.dtype).transpose(1, 2)
    capacity = num_keys + 40
    storage = torch.full((2, 1, case.heads[1], capacity, case.dim), NAN, dtype=case.dtype)
    slots = torch.randperm(capacity, generator=generator) if case.keys == "slots" else torch.arange(capacity)
    known = torch.randn(2, 1, case.heads[1], num_keys, case.dim, generator=generator).to(case.dtype)
    storage[:, :, :, slots[:num_keys]] = known
    key, value = storage.to(case.device)
    mask = None
    if case.mask != "causal":
        mask = ancestors(case.rows, generator)
        if case.mask == "words":
            mask = pack_mask(mask)
        elif case.mask == "wide":  # also about keys before the rows, as a drafter's levels are
            seen = torch.rand(case.rows, min(case.prefix, 9), generator=generator) < 0.5
            mask = torch.cat([seen, mask], dim=1)
        mask = mask.to(case.device)
    before = num_keys - (case.rows if mask is None or case.mask == "words" else mask.shape[1])
    layout = IN_ORDER
    if case.keys == "slots":
        layout = KeyLayout(slots[:num_keys].to(case.device))
    elif case.keys == "device":
        layout = KeyLayout(prefix_len=torch.tensor([before], dtype=torch.int32, device=case.device))
    else:
        key, value = key[:, :, :num_keys], value[:, :, :num_keys]
    return Inputs(query.to(case.device), key, value, mask, layout)
