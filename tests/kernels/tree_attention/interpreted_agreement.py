"""What agrees with the reference and what does not. Run by test_agreement.py, in Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.checkpoints.target import load_target
from explorer.errors import DeviceError
from kernels import dispatch
from kernels.tree_attention import triton as fused
from kernels.tree_attention.agreement import agrees
from tests.support.goldens import FOLDER

CPU = torch.device("cpu")


def spoil(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Make the Triton attention wrong in one way."""
    right = fused.tree_attention

    def wrong(query: Any, key: Any, value: Any, mask: Any, scale: float, layout: Any) -> Any:
        if how == "raises":
            raise RuntimeError("out of shared memory")
        if how == "ignores slots":
            return right(query, key, value, mask, scale)
        output = right(query, key, value, mask, scale * (1.5 if how == "wrong scale" else 1), layout)
        return output * float("nan") if how == "nan" else output

    monkeypatch.setattr(fused, "tree_attention", wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_right_agrees(dtype: torch.dtype) -> None:
    assert agrees((2, 1), 16, dtype, CPU)


@pytest.mark.parametrize("how", ["raises", "ignores slots", "wrong scale", "nan"])
def test_what_is_wrong_does_not(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, how)
    assert not agrees((2, 1), 16, torch.float32, CPU)


def test_a_target_falls_back_or_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(FOLDER / "base_a")
    assert load_target(folder, device="cpu", backend="triton").backend == "triton"
    spoil(monkeypatch, "wrong scale")
    with pytest.raises(DeviceError, match="does not agree with the reference"):
        load_target(folder, device="cpu", backend="triton")
    monkeypatch.setattr(dispatch, "_is_fastest_here", lambda _device: True)
    assert load_target(folder, device="cpu", backend="auto").backend == "naive"
