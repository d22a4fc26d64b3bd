"""Drafters of the published kinds that the goldens do not hold, made from the goldens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from tests.support.checkpoints import copy_golden, edit_json, edit_tensors, golden_dir, save_shards

BIN = "pytorch_model.bin"


def _noise(*shape: int, seed: int = 0, scale: float = 0.5) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * scale


def with_qkv_bias(folder: Path, base: str = "eagle_bias") -> Path:
    """As EAGLE-Qwen2: q, k and v have biases, the output projection has none; the config says so."""

    def add(tensors: dict[str, Tensor]) -> None:
        for seed, part in enumerate("qkv"):
            name = f"layers.0.self_attn.{part}_proj"
            tensors[f"{name}.bias"] = _noise(len(tensors[f"{name}.weight"]), seed=seed)

    made = copy_golden(base, folder)
    edit_json(made / "config.json", qkv_bias=True)
    edit_tensors(made, BIN, "model.safetensors", add)
    return made


def with_tied_scores(folder: Path, base: str = "eagle_bias") -> Path:
    """So sure of itself that probabilities round to 1: a child then scores what its parent does."""

    def sharpen(tensors: dict[str, Tensor]) -> None:
        tensors["layers.0.mlp.down_proj.weight"] *= 200

    made = copy_golden(base, folder)
    edit_tensors(made, BIN, "model.safetensors", sharpen)
    return made


def with_one_kv_head(folder: Path, base: str = "eagle_nobias") -> Path:
    """Other KV heads than the target, another rope_theta, half precision, pickled shards."""

    def shrink(tensors: dict[str, Tensor]) -> None:
        for part in "kv":
            name = f"layers.0.self_attn.{part}_proj.weight"
            tensors[name] = tensors[name][:16]

    made = copy_golden(base, folder)
    edit_json(made / "config.json", num_key_value_heads=1, rope_theta=777.0)
    tensors = torch.load(made / BIN, weights_only=True)
    (made / BIN).unlink()
    shrink(tensors)
    save_shards({name: tensor.half() for name, tensor in tensors.items()}, made, kind="bin")
    return made


def with_two_layers(folder: Path, base: str = "eagle_bias") -> Path:
    """A second layer, which has its input norm; the config is silent about layers."""

    def add(tensors: dict[str, Tensor]) -> None:
        first = {name: tensor for name, tensor in tensors.items() if name.startswith("layers.0.")}
        for seed, (name, tensor) in enumerate(first.items()):
            tensors[name.replace("layers.0.", "layers.1.")] = tensor + _noise(*tensor.shape, seed=seed, scale=0.05)
        tensors["layers.1.input_layernorm.weight"] = 1 + _noise(64, scale=0.1)

    made = copy_golden(base, folder)
    edit_json(made / "config.json", num_hidden_layers=None)
    edit_tensors(made, BIN, "model.safetensors", add)
    return made


def with_repeated_block(folder: Path, base: str = "medusa_a") -> Path:
    """Two residual blocks a head that are one object: equal tensors under two names (layout A or B)."""

    def repeat(tensors: dict[str, Tensor]) -> None:
        matrices = {n.replace(".1.", ".2."): tensors.pop(n) for n in list(tensors) if n.endswith(".1.weight")}
        tensors |= {name.replace(".0.", ".1.", 1): tensor.clone() for name, tensor in tensors.items()} | matrices

    old = "medusa_lm_head.pt" if (golden_dir(base) / "medusa_lm_head.pt").exists() else "medusa_lm_head.safetensors"
    made = copy_golden(base, folder)
    edit_json(made / "config.json", medusa_num_layers=2)
    edit_tensors(made, old, "medusa_lm_head.safetensors", repeat)
    return made


EAGLE_VARIANTS: dict[str, Callable[[Path], Path]] = {
    "qkv bias": with_qkv_bias,
    "tied scores": with_tied_scores,
    "one kv head": with_one_kv_head,
    "two layers": with_two_layers,
}
