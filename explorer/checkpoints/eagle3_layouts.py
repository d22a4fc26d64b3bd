"""EAGLE-3 drafters in the layouts that other programs load: the published one, which vLLM and SGLang read too.

They differ in where config.json names the layers that are read, where these are not the published three, and in what
they have no place for. Sources: SafeAILab/EAGLE (`eagle/model/cnets.py`), vllm-project/vllm
(`vllm/model_executor/models/llama_eagle3.py`) and sgl-project/sglang (`python/sglang/srt/models/llama_eagle3.py`); the
commits stand in tests/explorer/checkpoints.
"""

from __future__ import annotations

from typing import Any

import torch

from explorer.checkpoints.drafter_source import Eagle3Source
from explorer.checkpoints.eagle3 import FEATURE_LAYERS, IS_DRAFTED, published_layers
from explorer.checkpoints.eagle_files import TOKEN_MAP
from explorer.checkpoints.written import CONFIG, WEIGHTS, Written, dtype_of, json_bytes, llama_fields, tensor_bytes
from explorer.errors import CheckpointError

NUM_FEATURES = 3  # hidden states side by side, in both servers
SGLANG_LAYERS = "eagle_config"  # where SGLang looks, and counts the layer whose output is read


def published(drafter: Eagle3Source) -> Written:
    """As the authors publish it, with the layers named where they are others than theirs."""
    return _write(drafter, {}, [])


def for_vllm(drafter: Eagle3Source) -> Written:
    """vLLM reads the published layout, of three hidden states and without biases."""
    _check("vLLM", drafter)
    return _write(drafter, {}, [])


def for_sglang(drafter: Eagle3Source) -> Written:
    """SGLang reads the published layout; it names layers by the one whose output is read."""
    _check("SGLang", drafter)
    if not _has_own_layers(drafter):
        return _write(drafter, {}, [])
    layers = drafter.config.feature_layers
    if 0 in layers:
        raise CheckpointError(
            "the drafter reads the input of layer 0, which is no layer's output: SGLang cannot name it"
        )
    own = {SGLANG_LAYERS: {FEATURE_LAYERS: [layer - 1 for layer in layers]}}
    return _write(drafter, own, [f"{SGLANG_LAYERS} names the layers as SGLang counts them, by their outputs"])


def _check(server: str, drafter: Eagle3Source) -> None:
    if drafter.config.qkv_bias:
        raise CheckpointError(f"the drafter has biases in q, k and v, which {server}'s EAGLE-3 has no place for")
    if (count := len(drafter.config.feature_layers)) != NUM_FEATURES:
        raise CheckpointError(f"the drafter reads {count} layers, and {server}'s EAGLE-3 reads {NUM_FEATURES}")


def _write(drafter: Eagle3Source, fields: dict[str, Any], notes: list[str]) -> Written:
    tensors, ids = dict(drafter.weights) | drafter.own_embedding(), drafter.draft_ids()
    if ids is not None:
        tensors[TOKEN_MAP] = ids - torch.arange(len(ids))
        drafted = torch.zeros(drafter.config.vocab_size, dtype=torch.bool)
        tensors[IS_DRAFTED] = drafted.index_fill(0, ids, True)
    return Written({WEIGHTS: tensor_bytes(tensors), CONFIG: json_bytes(_config(drafter) | fields)}, notes)


def _config(drafter: Eagle3Source) -> dict[str, Any]:
    shape = drafter.config
    config = llama_fields(shape, drafter.base) | {
        "architectures": ["LlamaForCausalLMEagle3"],
        "draft_vocab_size": shape.draft_vocab_size or shape.vocab_size,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": dtype_of(drafter.weights),
    }
    optional = {"head_dim": shape.head_dim, "target_hidden_size": shape.target_hidden_size}
    config |= {name: value for name, value in optional.items() if value is not None}
    return config | ({FEATURE_LAYERS: list(shape.feature_layers)} if _has_own_layers(drafter) else {})


def _has_own_layers(drafter: Eagle3Source) -> bool:
    return drafter.config.feature_layers != published_layers(drafter.ends.num_layers)
