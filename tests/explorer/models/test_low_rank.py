"""Low-rank changes beside the weights and inside them: the same logits, and the original untouched by either."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.models.low_rank import TargetAdapter, adapted, linears_of, matrix_sizes, merge
from tests.support.tiny import ARCHITECTURES, tiny_model

IDS = torch.tensor([[5, 6, 7, 8, 9, 10]])


def tiny_adapter(model: Any, rank: int = 3, seed: int = 0) -> TargetAdapter:
    """An adapter whose every number is random: a fresh one changes nothing."""
    torch.manual_seed(seed)
    adapter = TargetAdapter(matrix_sizes(model.get_decoder()), rank, scale=0.5)
    for parameter in adapter.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return adapter


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_merged_weights_are_the_plain_computation(architecture: str) -> None:
    """Its plain twin: x W^T + scale * (x down^T) up^T for every matrix, float32 to 1e-5 of the largest logit."""
    model, twin = tiny_model(architecture=architecture), tiny_model(architecture=architecture)
    adapter = tiny_adapter(model)
    with torch.inference_mode():
        original = model(input_ids=IDS, use_cache=False).logits
        with adapted(model.get_decoder(), adapter):
            beside = model(input_ids=IDS, use_cache=False).logits
        merge(twin.get_decoder(), adapter)
        inside = twin(input_ids=IDS, use_cache=False).logits
        assert torch.equal(model(input_ids=IDS, use_cache=False).logits, original), "switched off, it is the original"
    scale = float(beside.abs().max())
    assert float((inside - beside).abs().max()) <= 1e-5 * scale
    assert float((beside - original).abs().max()) > 0.1 * scale, "an adapter that changes nothing tests nothing"


def test_the_plain_computation_of_one_matrix() -> None:
    model = tiny_model()
    linear = linears_of(model.get_decoder())["1.mlp.up_proj"]
    change = tiny_adapter(model).changes()["1.mlp.up_proj"]
    rows = torch.randn(4, linear.in_features)
    expected = rows @ (linear.weight + 0.5 * change.up @ change.down).T
    with torch.inference_mode():
        assert torch.allclose(linear(rows) + change(rows), expected, atol=1e-5)


def test_a_fresh_adapter_changes_nothing() -> None:
    model = tiny_model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    merge(model.get_decoder(), TargetAdapter(matrix_sizes(model.get_decoder()), 2, 1.0))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_every_matrix_of_the_layers_is_changed_and_nothing_else() -> None:
    model = tiny_model()
    adapter, before = tiny_adapter(model), {name: t.clone() for name, t in model.state_dict().items()}
    merge(model.get_decoder(), adapter)
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(before[name], tensor)}
    parts = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert changed == {name for name in before if name.split(".")[-2] in parts}
    assert len(changed) == 2 * len(parts) == len(adapter.changes())
    assert adapter.state_dict()["0.self_attn.q_proj.down"].shape == (3, 32)
    assert adapter.state_dict()["0.mlp.up_proj.up"].shape == (48, 3)


def test_gradients_reach_the_adapter_alone() -> None:
    model = tiny_model().requires_grad_(False)
    adapter = tiny_adapter(model)
    with adapted(model.get_decoder(), adapter):
        model.get_decoder()(input_ids=IDS, use_cache=False).last_hidden_state.sum().backward()
    assert all(parameter.grad is not None for parameter in adapter.parameters())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_target_in_bfloat16_is_merged_with_one_rounding() -> None:
    model, exact = tiny_model(), tiny_model()
    adapter = tiny_adapter(model)
    model.to(torch.bfloat16)
    for name, linear in linears_of(exact.get_decoder()).items():
        linear.weight.data = linear.weight.bfloat16().float() + adapter.changes()[name].product()
    merge(model.get_decoder(), adapter)
    wanted = {name: linear.weight.bfloat16() for name, linear in linears_of(exact.get_decoder()).items()}
    assert all(torch.equal(linear.weight, wanted[name]) for name, linear in linears_of(model.get_decoder()).items())
