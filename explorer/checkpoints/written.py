"""Files of a drafter in some layout, before they are written: their bytes, and what changed on the way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from safetensors.torch import save
from torch import Tensor

from explorer.models.eagle_layer import DrafterShape

CONFIG, WEIGHTS = "config.json", "model.safetensors"


@dataclass(frozen=True)
class Written:
    """A drafter in a layout: files by name, and what a reader should know of the change."""

    files: dict[str, bytes]
    notes: list[str] = field(default_factory=list)


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """A config file; ValueError for numbers that JSON does not have."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def llama_fields(shape: DrafterShape, base: str) -> dict[str, Any]:
    """What config.json says of a drafter's decoder layers, as of a Llama; base: the target's name."""
    return {
        "model_type": "llama",
        "base_model_name_or_path": base,
        "hidden_size": shape.hidden_size,
        "intermediate_size": shape.intermediate_size,
        "num_hidden_layers": shape.num_layers,
        "num_attention_heads": shape.num_attention_heads,
        "num_key_value_heads": shape.num_key_value_heads,
        "hidden_act": shape.hidden_act,
        "rms_norm_eps": shape.rms_norm_eps,
        "rope_theta": shape.rope_theta,
        "max_position_embeddings": shape.max_position_embeddings,
        "vocab_size": shape.vocab_size,
    }


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """safetensors with every bit as it is; a tensor with two names is stored for each."""
    stored: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        whole = tensor.detach().contiguous()
        stored[name] = whole.clone() if whole.data_ptr() in seen else whole
        seen.add(whole.data_ptr())
    return save(stored, metadata={"format": "pt"})


def dtype_of(tensors: Mapping[str, Tensor]) -> str:
    """The dtype of the weights as config.json writes it."""
    return str(next(t.dtype for t in tensors.values() if t.is_floating_point())).removeprefix("torch.")
