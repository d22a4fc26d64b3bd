"""The reference attention against the textbook formula in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.tree_attention.inputs import KeyLayout, unpack_mask
from kernels.tree_attention.naive import tree_attention, tree_mask
from tests.support.attention import Case, make_inputs


def textbook(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    """softmax(q k^T scale + mask) v with keys repeated for every query head of their group."""
    group = query.shape[1] // key.shape[1]
    key, value = (t.double().repeat_interleave(group, dim=1) for t in (key, value))
    scores = (query.double() @ key.mT) * scale
    return (scores.masked_fill(~mask, float("-inf")).softmax(-1) @ value).to(query.dtype)


@pytest.mark.parametrize("prefix", [0, 1, 17])
@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("heads", [(2, 2), (6, 2), (4, 1)], ids=str)
@pytest.mark.parametrize("kind", ["causal", "tree"])
def test_equals_the_textbook(prefix: int, rows: int, heads: tuple[int, int], kind: str) -> None:
    generator = torch.Generator().manual_seed(prefix * 100 + rows)
    query = torch.randn(1, heads[0], rows, 8, generator=generator)
    key, value = (torch.randn(1, heads[1], prefix + rows, 8, generator=generator) for _ in range(2))
    causal = torch.ones(rows, prefix + rows, dtype=torch.bool).tril(prefix)
    mask = causal.clone()
    if kind == "tree":
        mask[:, prefix:] &= torch.rand(rows, rows, generator=generator) < 0.5
        mask[:, prefix:] |= torch.eye(rows, dtype=torch.bool)
    ours = tree_attention(query, key, value, mask if kind == "tree" else None, 0.3)
    torch.testing.assert_close(ours, textbook(query, key, value, mask, 0.3), atol=1e-5, rtol=1e-5)


def test_a_mask_of_another_shape_is_refused() -> None:
    tensor = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="mask is"):
        tree_attention(tensor, tensor, tensor, torch.ones(2, 3, dtype=torch.bool), 1.0)


@pytest.mark.parametrize("keys", ["order", "slots", "device"])
@pytest.mark.parametrize("mask", ["words", "bool", "wide", "causal"])
@pytest.mark.parametrize(("rows", "prefix"), [(1, 0), (1, 6), (3, 0), (65, 20)])
def test_every_form_of_mask_and_layout_equals_the_textbook(keys: str, mask: str, rows: int, prefix: int) -> None:
    inputs = make_inputs(Case(rows=rows, prefix=prefix, dim=8, mask=mask, keys=keys))
    num_keys = prefix + rows
    slots = torch.arange(num_keys) if inputs.layout.slots is None else inputs.layout.slots
    key, value = inputs.key[:, :, slots], inputs.value[:, :, slots]
    seen = torch.ones(rows, num_keys, dtype=torch.bool).tril(prefix)
    if inputs.mask is not None:
        tail = unpack_mask(inputs.mask, rows) if mask == "words" else inputs.mask
        seen = torch.ones(rows, num_keys, dtype=torch.bool)
        seen[:, num_keys - tail.shape[1] :] = tail
    got = tree_attention(inputs.query, inputs.key, inputs.value, inputs.mask, 0.3, inputs.layout)
    torch.testing.assert_close(got, textbook(inputs.query, key, value, seen, 0.3), atol=1e-5, rtol=1e-5)


def test_slots_with_a_length_on_the_device() -> None:
    inputs = make_inputs(Case(rows=3, prefix=4, dim=8, keys="slots"))
    assert inputs.layout.slots is not None
    more = torch.cat([inputs.layout.slots, torch.full((5,), 2**40)])  # what was never written may be any number
    layout = KeyLayout(more, torch.tensor([4], dtype=torch.int32))
    got = tree_attention(inputs.query, inputs.key, inputs.value, inputs.mask, 0.3, layout)
    expected = tree_attention(inputs.query, inputs.key, inputs.value, inputs.mask, 0.3, inputs.layout)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-6)


def test_the_mask_it_is_handed_has_the_prefix_before_it() -> None:
    mask = torch.eye(3, dtype=torch.bool)
    assert torch.equal(tree_mask(mask, 2), torch.cat([torch.ones(3, 2, dtype=torch.bool), mask], dim=1))
