"""Targets as drafters see them, and checkpoint folders to damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"


@dataclass
class Facts:
    """What a drafter has to fit, without a model: the shape of the golden targets unless said otherwise."""

    name: str = "facts"
    hidden_size: int = 64
    vocab_size: int = 320
    num_layers: int = 3
    dtype: torch.dtype = torch.float32
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    embed_tokens: nn.Embedding = field(init=False)
    lm_head: nn.Linear = field(init=False)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.embed_tokens = nn.Embedding(self.vocab_size, self.hidden_size, dtype=self.dtype)
        self.lm_head = nn.Linear(self.hidden_size, self.vocab_size, bias=False, dtype=self.dtype)


def golden_dir(name: str) -> Path:
    """The folder of a golden checkpoint; read only."""
    return GOLDENS / name


def copy_golden(name: str, folder: Path) -> Path:
    """A writable copy of a golden checkpoint."""
    return Path(shutil.copytree(golden_dir(name), folder / name))


def edit_json(path: Path, **changes: object) -> None:
    """Set fields of a JSON file; None removes one."""
    value = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: item for name, item in value.items() if item is not None}))


def edit_tensors(folder: Path, old: str, new: str, change: Callable[[dict[str, Tensor]], None]) -> None:
    """Rewrite the weights ``old`` of a folder as safetensors ``new`` after ``change`` had its way with them."""
    path = folder / old
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        tensors = load_file(path)
    else:
        tensors = torch.load(path, weights_only=True)
    path.unlink()
    change(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / new)


def vllm_copy(folder: Path, name: str = "medusa_a", prefix: str = "") -> Path:
    """A golden of layout A, one residual block a head, as vLLM's converters write it."""
    made = folder / f"{name}_vllm"
    made.mkdir()
    tensors = torch.load(golden_dir(name) / "medusa_lm_head.pt", weights_only=True)
    renamed = {}
    for key, tensor in tensors.items():
        head, _, part = key.partition(".")
        is_matrix = part == "1.weight"
        to = f"lm_heads.{head}.weight" if is_matrix else f"blocks.{head}.layers.0.{part.removeprefix('0.linear.')}"
        renamed[prefix + to] = tensor.contiguous()
    save_file(renamed, made / "model.safetensors")
    (made / "config.json").write_text(json.dumps({"model_type": "medusa", "num_heads": 5, "num_hidden_layers": 1}))
    return made


def save_shards(tensors: dict[str, Tensor], folder: Path, *, kind: str = "safetensors", num_shards: int = 3) -> None:
    """Write tensors in shards of safetensors or pickles ("bin"), with the index that names them."""
    single = {"safetensors": "model.safetensors", "bin": "pytorch_model.bin"}[kind]
    weight_map = {name: f"part-{number % num_shards}.{kind}" for number, name in enumerate(tensors)}
    for shard in sorted(set(weight_map.values())):
        part = {name: tensor.contiguous() for name, tensor in tensors.items() if weight_map[name] == shard}
        if kind == "bin":
            torch.save(part, folder / shard)
        else:
            save_file(part, folder / shard, metadata={"format": "pt"})
    (folder / f"{single}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
