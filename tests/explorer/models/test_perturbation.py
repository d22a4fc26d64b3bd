"""Noise of the size that was asked for, and nothing of it left afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from explorer.models.packed import PackedLinear
from explorer.models.perturbation import perturbed
from explorer.target import Target
from tests.support.tiny import tiny_target


def read(target: Target) -> Tensor:
    target.start(8)
    return target.prefill([1, 2, 3, 4]).logits


def test_a_target_is_changed_and_restored_bit_by_bit() -> None:
    target = tiny_target()
    before = read(target)
    with target.perturbed(0.05) as count:
        assert count > 0
        changed = read(target)
        assert not torch.equal(changed, before)
    assert torch.equal(read(target), before)
    with pytest.raises(KeyboardInterrupt), target.perturbed(0.05):
        raise KeyboardInterrupt
    assert torch.equal(read(target), before)
    with target.perturbed(0.05):
        assert torch.equal(read(target), changed), "the same noise each time"
    with target.perturbed(0.0) as count:
        assert count == 0 and torch.equal(read(target), before)


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_noise_has_the_size_that_was_asked_for(is_packed: bool) -> None:
    linear = nn.Linear(300, 200).requires_grad_(False)
    layer = PackedLinear(linear) if is_packed else linear
    own, probe = linear.weight.clone(), torch.eye(300)
    with perturbed(nn.Sequential(layer), 0.1), torch.inference_mode():
        noise = (layer(probe) - linear.bias).T - own
        assert float(noise.std() / own.std()) == pytest.approx(0.1, rel=0.05)
    with torch.inference_mode():
        assert torch.equal(layer(probe), (PackedLinear(linear) if is_packed else linear)(probe))
    assert torch.equal(linear.weight, own)
