"""Bytes of a drafter's files: every bit and dtype, shared tensors for each of their names, no numbers beyond JSON."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load

from explorer.checkpoints.written import dtype_of, json_bytes, tensor_bytes


def test_tensors_come_back_bit_for_bit() -> None:
    whole = torch.randn(4, 6).half()
    tensors = {"a": whole, "again": whole, "cut": whole[:, ::2], "ids": torch.arange(3)}
    back = load(tensor_bytes(tensors))
    assert back.keys() == tensors.keys()
    assert all(back[name].dtype == t.dtype and torch.equal(back[name], t) for name, t in tensors.items())


def test_the_dtype_is_that_of_the_weights() -> None:
    assert dtype_of({"ids": torch.arange(3), "w": torch.ones(1, dtype=torch.bfloat16)}) == "bfloat16"


def test_a_config_is_json() -> None:
    assert json.loads(json_bytes({"a": [1, None]})) == {"a": [1, None]}
    with pytest.raises(ValueError, match="JSON"):
        json_bytes({"a": float("nan")})
