"""Medusa-2 drafters for the golden target base_b: its published heads of layout B, and a random adapter beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.support.checkpoints import copy_golden, golden_dir

RANK, NUM_LAYERS = 2, 4
NORM = "target_norm"
# Path of a matrix in a layer of base_b -> (inputs, outputs): written from its config alone.
MATRICES = {
    "self_attn.q_proj": (64, 64),
    "self_attn.k_proj": (64, 32),
    "self_attn.v_proj": (64, 32),
    "self_attn.o_proj": (64, 64),
    "mlp.gate_proj": (64, 128),
    "mlp.up_proj": (64, 128),
    "mlp.down_proj": (128, 64),
}


def adapter_tensors(size: float = 0.3) -> dict[str, Tensor]:
    """Every tensor of such an adapter; size: the standard deviation of its numbers."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    for layer in range(NUM_LAYERS):
        for path, (inputs, outputs) in MATRICES.items():
            found[f"{layer}.{path}.down"] = size * torch.randn(RANK, inputs, generator=generator)
            found[f"{layer}.{path}.up"] = size * torch.randn(outputs, RANK, generator=generator)
    return {name: tensor.half() for name, tensor in found.items()}


def base_b_norm() -> float:
    """Of all matrices that the adapter changes, read from the target's file."""
    from safetensors.torch import load_file

    stored = load_file(golden_dir("base_b") / "model.safetensors")
    matrices = [t for name, t in stored.items() if any(f"{path}.weight" in name for path in MATRICES)]
    return float(torch.cat([matrix.double().flatten() for matrix in matrices]).norm())


def write_medusa2(folder: Path, name: str = "medusa2", tensors: dict[str, Tensor] | None = None, **facts: Any) -> Path:
    """A drafter folder; tensors and facts replace what it would hold."""
    copied = copy_golden("medusa_b", folder)
    made = copied.rename(folder / name)
    save_file(adapter_tensors() if tensors is None else tensors, made / "target_adapter.safetensors")
    numbers = {"rank": RANK, "scale": 0.5, NORM: base_b_norm(), "mean_kl": 0.25, "agreement": 0.875, "num_tokens": 1234}
    config = json.loads((made / "config.json").read_text())
    config |= {"target_adapter": numbers | facts, "base_model_name_or_path": "base_b"}
    (made / "config.json").write_text(json.dumps(config))
    return made
