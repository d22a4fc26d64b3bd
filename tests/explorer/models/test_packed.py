"""Packed layers against the plain ones they replace."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from explorer.models import packed
from explorer.models.packed import PackedLinear, pack, pack_linears


@pytest.mark.parametrize("rows", [1, 2, 8, 16, 60])
@pytest.mark.parametrize("has_bias", [False, True])
def test_packed_equals_plain(rows: int, has_bias: bool) -> None:
    torch.manual_seed(rows)
    linear = nn.Linear(48, 80, bias=has_bias)
    layer = pack(linear)
    assert isinstance(layer, PackedLinear)
    inputs = torch.randn(2, rows, 48)
    with torch.inference_mode():
        torch.testing.assert_close(layer(inputs), linear(inputs), atol=1e-5, rtol=1e-5)


def test_every_linear_below_a_module_is_replaced() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.SiLU()), nn.LayerNorm(8))
    assert pack_linears(module) == 2
    assert not [child for child in module.modules() if isinstance(child, nn.Linear)]


def test_other_dtypes_stay_as_they_are() -> None:
    linear = nn.Linear(4, 4).bfloat16()
    assert pack(linear) is linear


def test_a_layer_that_disagrees_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_TOLERANCE", -1.0)
    linear = nn.Linear(4, 4)
    assert pack(linear) is linear
