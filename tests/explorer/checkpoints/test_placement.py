"""Words for devices and dtypes mean what this machine has, or are refused with those that it has."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from explorer.checkpoints.placement import choose_device, choose_dtype
from explorer.errors import DeviceError


@pytest.mark.parametrize("device", ["tpu9", "cuda:99", "", "meta", "cpu:x", "hpu", "privateuseone"])
def test_devices_that_are_not_here(device: str) -> None:
    with pytest.raises(DeviceError, match="choose auto"):
        choose_device(device)


def test_devices_that_are() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto") == choose_device("split")
    assert choose_device("auto").type in ("cpu", "cuda")


def test_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, cuda = torch.device("cpu"), torch.device("cuda")
    llama, qwen = SimpleNamespace(model_type="llama", dtype=torch.float16), SimpleNamespace(model_type="qwen2")
    assert choose_dtype("auto", cpu, llama) == torch.float32
    assert choose_dtype("auto", cuda, llama) == choose_dtype("auto", cuda, qwen) == torch.bfloat16
    assert choose_dtype("float16", cpu, llama) == torch.float16
    with pytest.raises(DeviceError, match="choose auto, float32, bfloat16, float16"):
        choose_dtype("float8", cpu, llama)
    with pytest.raises(DeviceError, match="choose bfloat16 or float32"):
        choose_dtype("float16", cuda, qwen)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda _: False)
    assert choose_dtype("auto", cuda, llama) == torch.float16
    assert choose_dtype("auto", cuda, qwen) == torch.float32
