"""The trained golden targets as other architectures: the same function of the text by another arithmetic."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.support.checkpoints import golden_dir, save_shards

_SHARED = (
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads "
    "max_position_embeddings rms_norm_eps bos_token_id eos_token_id tie_word_embeddings"
).split()


def convert(base: str, architecture: str, folder: Path, *, kind: str = "safetensors") -> Path:
    """Write golden target ``base`` as ``architecture`` in shards; every output token stays the same.

    Mistral is Llama without its window. Qwen2 has biases, here zeros. Gemma scales its embedding by sqrt(hidden size)
    and its norms by 1 + weight, so both are stored less that; with its tied head, logits are 8 times smaller.
    """
    source, made = golden_dir(base), folder / f"{base}_{architecture}"
    made.mkdir()
    for path in source.iterdir():
        if path.name.startswith(("tokenizer", "special", "chat", "generation")):
            shutil.copy(path, made)
    old = json.loads((source / "config.json").read_text())
    rope = old.get("rope_parameters") or {"rope_type": "default", "rope_theta": old.get("rope_theta", 10000.0)}
    config: dict[str, Any] = {name: old.get(name) for name in _SHARED} | {"rope_parameters": rope, "dtype": "float32"}
    config |= {"model_type": architecture, "architectures": [f"{architecture.capitalize()}ForCausalLM"]}
    tensors = load_file(source / "model.safetensors")
    if architecture == "mistral":
        config["sliding_window"] = None
    elif architecture == "qwen2":
        tensors |= _zero_biases(tensors)
    elif architecture == "gemma":
        config |= {"head_dim": 16, "hidden_act": "silu", "hidden_activation": "silu"}
        tensors = {name: _for_gemma(name, tensor) for name, tensor in tensors.items()}
    (made / "config.json").write_text(json.dumps(config))
    save_shards(tensors, made, kind=kind)
    return made


def _zero_biases(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    weights = {
        name: t for name, t in tensors.items() if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))
    }
    return {name.removesuffix("weight") + "bias": torch.zeros(len(tensor)) for name, tensor in weights.items()}


def _for_gemma(name: str, tensor: Tensor) -> Tensor:
    if name == "model.embed_tokens.weight":
        return tensor / 8
    return tensor - 1 if "norm" in name else tensor
