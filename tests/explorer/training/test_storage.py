"""Files are written whole or not at all, and tensors as float16."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from explorer.training import storage


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    storage.write_npz(path, {"x": np.arange(3)})

    def fail(*_args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(storage.os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        storage.write_npz(path, {"x": np.arange(5)})
    assert storage.read_npz(path, ("x",))["x"].tolist() == [0, 1, 2]


def test_tensors_are_halved_but_integers_kept(tmp_path: Path) -> None:
    storage.write_tensors(tmp_path / "t.safetensors", {"w": torch.randn(2, 3), "d2t": torch.tensor([70000])})
    read = load_file(tmp_path / "t.safetensors")
    assert read["w"].dtype == torch.float16
    assert read["d2t"].tolist() == [70000]
    assert [path.name for path in tmp_path.iterdir()] == ["t.safetensors"]


def test_json_is_strict(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        storage.write_json(tmp_path / "x.json", {"a": float("nan")})
    assert not list(tmp_path.iterdir())
