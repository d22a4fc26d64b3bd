"""Medusa's heads: published keys, both LM layouts, and the identity they start from."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from explorer.models.medusa_heads import MedusaHeads


def test_keys_are_the_published_ones() -> None:
    shared = MedusaHeads(2, 1, 8, 20, own_lm=False)
    assert list(shared.state_dict()) == ["0.0.linear.weight", "0.0.linear.bias", "1.0.linear.weight", "1.0.linear.bias"]
    own = MedusaHeads(1, 2, 8, 20, own_lm=True).state_dict()
    assert set(own) == {f"0.{j}.linear.{part}" for j in range(2) for part in ("weight", "bias")} | {"0.2.weight"}
    assert own["0.2.weight"].shape == (20, 8)


def test_shared_head_reads_blocks_through_the_targets_matrix() -> None:
    torch.manual_seed(0)
    heads = MedusaHeads(3, 1, 8, 20)
    for parameter in heads.parameters():
        torch.nn.init.normal_(parameter)
    lm_head, hidden = torch.nn.Linear(8, 20, bias=False), torch.randn(5, 8)
    logits = heads(hidden, lm_head)
    assert logits.shape == (3, 5, 20)
    block = heads[1][0].linear
    expected = (hidden + torch.nn.functional.silu(hidden @ block.weight.T + block.bias)) @ lm_head.weight.T
    assert torch.allclose(logits[1], expected, atol=1e-6)


def test_own_matrices_ignore_the_targets() -> None:
    heads = MedusaHeads(2, 1, 8, 20, own_lm=True)

    def refuse(_hidden: torch.Tensor) -> torch.Tensor:
        raise AssertionError("a head with its own matrix asked for the target's")

    assert heads(torch.randn(4, 8), refuse).shape == (2, 4, 20)


def test_equal_blocks_are_held_once_and_give_the_same() -> None:
    heads, hidden = MedusaHeads(2, 3, 8, 20), torch.randn(4, 8)
    for head in heads:
        torch.nn.init.normal_(head[0].linear.weight)
        for block in head[1:]:
            block.load_state_dict(head[0].state_dict())
    heads[1][2].linear.bias.data += 1
    lm_head = torch.nn.Linear(8, 20, bias=False)
    expected, before = heads(hidden, lm_head), len(list(heads.parameters()))
    heads.tie_equal_blocks()
    assert torch.equal(heads(hidden, lm_head), expected)
    assert len(list(heads.parameters())) == before - 4
    assert heads[1][0] is not heads[1][2]


def test_a_reduced_vocabulary_maps_both_ways() -> None:
    heads = MedusaHeads(1, 1, 8, 3, own_lm=True)
    assert heads.to_target(torch.tensor([2])).tolist() == [2]
    assert heads.to_draft(7) == 7
    heads.restrict(torch.tensor([5, 9, 1]))
    assert heads.to_target(torch.tensor([[0, 2]])).tolist() == [[5, 1]]
    assert [heads.to_draft(token) for token in (9, 2)] == [1, None]
    assert "token_map" not in heads.state_dict()


@pytest.mark.parametrize("bias", [True, False])
def test_heads_without_matrices_read_the_rows_of_their_tokens(bias: bool) -> None:
    heads, lm_head, hidden = MedusaHeads(2, 1, 8, 12), nn.Linear(8, 12, bias=bias), torch.randn(3, 8)
    assert heads.head_layer(lm_head) is lm_head
    full = heads(hidden, lm_head)
    heads.restrict(torch.tensor([5, 9, 1]))
    torch.testing.assert_close(heads(hidden, heads.head_layer(lm_head)), full[..., [5, 9, 1]])
    assert heads.num_draft_tokens == 3
