"""EAGLE-3 drafters as their authors publish them, made of random tensors: shapes written from the reference alone.

And the same under speculators' names, with the fields that its own converter writes (release 0.9.0, transformers 5).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

HIDDEN, VOCAB, DRAFTED = 64, 320, 200
LAYERS = [0, 1, 2]  # of the golden targets, which have three
SAFE, BIN = "model.safetensors", "pytorch_model.bin"
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_position_embeddings": 2048,
    "vocab_size": VOCAB,
    "draft_vocab_size": DRAFTED,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
}


def eagle3_tensors(target_size: int = HIDDEN, num_features: int = 3, head_dim: int = 16) -> dict[str, Tensor]:
    """Every tensor of such a file; every third token cannot be drafted."""
    generator = torch.Generator().manual_seed(0)

    def matrix(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator) * 1.5 / shape[-1] ** 0.5

    def norm(size: int) -> Tensor:
        return 1 + 0.2 * torch.randn(size, generator=generator)

    drafted = torch.tensor([token for token in range(VOCAB) if token % 3][:DRAFTED])
    tensors = {
        "midlayer.self_attn.q_proj.weight": matrix(4 * head_dim, 2 * HIDDEN),
        "midlayer.self_attn.k_proj.weight": matrix(2 * head_dim, 2 * HIDDEN),
        "midlayer.self_attn.v_proj.weight": matrix(2 * head_dim, 2 * HIDDEN),
        "midlayer.self_attn.o_proj.weight": matrix(HIDDEN, 4 * head_dim),
        "midlayer.mlp.gate_proj.weight": matrix(96, HIDDEN),
        "midlayer.mlp.up_proj.weight": matrix(96, HIDDEN),
        "midlayer.mlp.down_proj.weight": matrix(HIDDEN, 96),
        "fc.weight": matrix(HIDDEN, num_features * target_size),
        "lm_head.weight": matrix(DRAFTED, HIDDEN),
        "norm.weight": norm(HIDDEN),
        "d2t": drafted - torch.arange(DRAFTED),
        "t2d": torch.zeros(VOCAB, dtype=torch.bool).index_fill(0, drafted, True),
    }
    return tensors | {
        f"midlayer.{name}.weight": norm(HIDDEN)
        for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm")
    }


def write_eagle3(
    folder: Path,
    tensors: dict[str, Tensor] | None = None,
    *,
    file: str = SAFE,
    layers: list[int] | None = None,
    **changes: Any,
) -> Path:
    """A drafter folder; layers None leaves the list of them out; a change to None takes the field away."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = eagle3_tensors() if tensors is None else tensors
    save_file(tensors, folder / file) if file == SAFE else torch.save(tensors, folder / file)
    config = CONFIG | {"eagle_aux_hidden_state_layer_ids": layers} | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    return folder


def write_speculators(folder: Path, more: dict[str, Tensor] | None = None, **changes: Any) -> Path:
    """The drafter as speculators writes it, with ``more`` tensors."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name.replace("midlayer.", "layers.0."): tensor for name, tensor in eagle3_tensors().items()}
    save_file(tensors | (more or {}), folder / SAFE)
    layer = {name: value for name, value in CONFIG.items() if name not in ("architectures", "draft_vocab_size")}
    layer["rope_parameters"] = {"rope_theta": layer.pop("rope_theta"), "rope_type": "default"}
    config = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "accept_tolerance": 0.0,
                    "proposal_type": "greedy",
                    "speculative_tokens": 3,
                    "verifier_accept_k": 1,
                }
            ],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "some/target"},
        },
        "transformer_layer_config": layer,
        "draft_vocab_size": DRAFTED,
        "norm_before_residual": False,
        "target_hidden_size": None,
        "eagle_aux_hidden_state_layer_ids": None,
        "norm_before_fc": False,
        "fc_norm": False,
        "norm_output": False,
        "embed_requires_grad": False,
    }
    (folder / "config.json").write_text(json.dumps(config | changes))
    return folder
