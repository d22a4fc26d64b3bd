"""vLLM's names for Medusa heads, there and back; what its files leave out is put in."""

from __future__ import annotations

import pytest
import torch

from explorer.checkpoints.vllm_medusa import from_vllm, is_vllm, vllm_name

WEIGHT, MATRIX, TOKENS = torch.ones(4, 4), torch.arange(24.0).view(6, 4), torch.tensor([5, 0, 2])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["blocks.0.layers.0.weight"], True),
        (["medusa_heads.blocks.0.layers.0.weight", "lm_heads.0.weight"], True),
        (["0.0.linear.weight", "0.1.weight"], False),
        (["blocks.0.layers.0.linear.weight"], False),
        (["lm_heads.0.weight"], False),
        (["transformer.blocks.0.layers.0.weight"], False),
        ([], False),
    ],
)
def test_it_is_told_by_its_blocks(names: list[str], expected: bool) -> None:
    assert is_vllm(names) is expected


@pytest.mark.parametrize("prefix", ["", "medusa_heads."])
def test_names_there_and_back(prefix: str) -> None:
    found = {
        f"{prefix}blocks.{h}.layers.{j}.{part}": WEIGHT
        for h in range(2)
        for j in range(3)
        for part in ("weight", "bias")
    }
    found |= {f"{prefix}lm_heads.{h}.weight": MATRIX for h in range(2)}
    tensors, token_map = from_vllm(found)
    assert token_map is None
    assert {"1.2.linear.bias", "0.0.linear.weight", "0.3.weight", "1.3.weight"} <= tensors.keys()
    assert {prefix + vllm_name(name) for name in tensors} == found.keys()


def test_what_is_not_vllms_keeps_its_name() -> None:
    tensors, _ = from_vllm({"blocks.0.layers.0.weight": WEIGHT, "norm.weight": WEIGHT})
    assert "norm.weight" in tensors
    assert vllm_name("norm.weight") == "norm.weight"


def test_missing_biases_are_zero_where_all_are_missing() -> None:
    tensors, _ = from_vllm({f"blocks.{h}.layers.0.weight": WEIGHT for h in range(2)})
    assert torch.equal(tensors["1.0.linear.bias"], torch.zeros(4))
    some = {"blocks.0.layers.0.weight": WEIGHT, "blocks.0.layers.0.bias": WEIGHT[0], "blocks.1.layers.0.weight": WEIGHT}
    assert "1.0.linear.bias" not in from_vllm(some)[0], "a single missing one is an error for the loader to tell"


@pytest.mark.parametrize("name", ["lm_head.weight", "lm_heads.0.weight"])
def test_one_matrix_serves_all_heads(name: str) -> None:
    tensors, _ = from_vllm({f"blocks.{h}.layers.0.weight": WEIGHT for h in range(3)} | {name: MATRIX})
    assert all(tensors[f"{head}.1.weight"] is MATRIX for head in range(3))
    assert name not in tensors


def test_full_matrices_are_cut_to_the_token_map() -> None:
    found = {"blocks.0.layers.0.weight": WEIGHT, "lm_heads.0.weight": MATRIX, "token_map": TOKENS}
    tensors, token_map = from_vllm(found)
    assert token_map is TOKENS
    assert torch.equal(tensors["0.1.weight"], MATRIX[[5, 0, 2]])
    already, _ = from_vllm(found | {"lm_heads.0.weight": MATRIX[:3]})
    assert torch.equal(already["0.1.weight"], MATRIX[:3])


@pytest.mark.parametrize("odd", [torch.tensor([0, 9]), torch.tensor([-1, 0]), torch.ones(2), torch.ones(1, 2).long()])
def test_a_map_that_cannot_be_right_cuts_nothing(odd: torch.Tensor) -> None:
    tensors, _ = from_vllm({"blocks.0.layers.0.weight": WEIGHT, "lm_heads.0.weight": MATRIX, "token_map": odd})
    assert tensors["0.1.weight"] is MATRIX
