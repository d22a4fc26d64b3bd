"""EAGLE-3 drafters in the layouts that other programs load: the published one, which vLLM and SGLang read too.

They differ in where config.json names the layers that are read, where these are not the published three, and in what
they have no place for; speculators' has names of its own. Sources: SafeAILab/EAGLE (`eagle/model/cnets.py`),
vllm-project/vllm (`vllm/model_executor/models/llama_eagle3.py`, `vllm/transformers_utils/configs/speculators/`),
sgl-project/sglang (`python/sglang/srt/models/llama_eagle3.py`) and vllm-project/speculators
(`src/speculators/models/eagle3/`); the commits stand in tests/explorer/checkpoints.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from explorer.checkpoints.drafter_source import Eagle3Source
from explorer.checkpoints.eagle3 import FEATURE_LAYERS, IS_DRAFTED, published_layers
from explorer.checkpoints.eagle_files import TOKEN_MAP
from explorer.checkpoints.speculators_eagle import EAGLE3_TYPE, NORM_BEFORE_RESIDUAL, header, to_speculators
from explorer.checkpoints.written import CONFIG, WEIGHTS, Written, dtype_of, json_bytes, llama_fields, tensor_bytes
from explorer.errors import CheckpointError

NUM_FEATURES = 3  # hidden states side by side, in both servers
SGLANG_LAYERS = "eagle_config"  # where SGLang looks, and counts the layer whose output is read
SPECULATIVE_TOKENS = 3  # what speculators' own converter writes for EAGLE-3
_BESIDE_LAYER = (  # of the published config, what speculators' does not say of the decoder layer
    "architectures",
    "base_model_name_or_path",
    "draft_vocab_size",
    "target_hidden_size",
    FEATURE_LAYERS,
    "torch_dtype",
)


def published(drafter: Eagle3Source) -> Written:
    """As the authors publish it, with the layers named where they are others than theirs."""
    _refuse_normed_residual("the authors' code", drafter)
    return _write(drafter, {}, [])


def for_vllm(drafter: Eagle3Source) -> Written:
    """vLLM reads the published layout, of three hidden states and without biases; it knows the normed residual."""
    _check("vLLM", drafter)
    norms_residual = {NORM_BEFORE_RESIDUAL: True} if drafter.config.norm_before_residual else {}
    return _write(drafter, norms_residual, [])


def for_sglang(drafter: Eagle3Source) -> Written:
    """SGLang reads the published layout; it names layers by the one whose output is read."""
    _check("SGLang", drafter)
    _refuse_normed_residual("SGLang", drafter)
    if not _has_own_layers(drafter):
        return _write(drafter, {}, [])
    layers = drafter.config.feature_layers
    if 0 in layers:
        raise CheckpointError(
            "the drafter reads the input of layer 0, which is no layer's output: SGLang cannot name it"
        )
    own = {SGLANG_LAYERS: {FEATURE_LAYERS: [layer - 1 for layer in layers]}}
    return _write(drafter, own, [f"{SGLANG_LAYERS} names the layers as SGLang counts them, by their outputs"])


def for_speculators(drafter: Eagle3Source) -> Written:
    """speculators' own names, the layer's shape apart from the rest; vLLM reads this too, of three hidden states."""
    shape = drafter.config
    if shape.qkv_bias:
        raise CheckpointError("the drafter has biases in q, k and v alone, which speculators' EAGLE-3 has no place for")
    layer = {name: value for name, value in _config(drafter).items() if name not in _BESIDE_LAYER}
    fields = {
        "architectures": ["Eagle3Speculator"],
        **header(EAGLE3_TYPE, SPECULATIVE_TOKENS, drafter.base, drafter.ends.architectures),
        "transformer_layer_config": layer,
        "draft_vocab_size": shape.draft_vocab_size or shape.vocab_size,
        "target_hidden_size": shape.target_hidden_size,
        NORM_BEFORE_RESIDUAL: shape.norm_before_residual,
        FEATURE_LAYERS: list(shape.feature_layers),
        "torch_dtype": dtype_of(drafter.weights),
    }
    tensors = {to_speculators(name, EAGLE3_TYPE): tensor for name, tensor in _tensors(drafter).items()}
    notes = []
    if (count := len(shape.feature_layers)) != NUM_FEATURES:
        notes.append(f"it reads {count} layers: vLLM, which loads this layout too, reads {NUM_FEATURES}")
    if shape.target_hidden_size not in (None, shape.hidden_size):
        notes.append("the target is not as wide as the drafter: vLLM loads that, the package speculators does not")
    return Written({WEIGHTS: tensor_bytes(tensors), CONFIG: json_bytes(fields)}, notes)


def _refuse_normed_residual(who: str, drafter: Eagle3Source) -> None:
    if drafter.config.norm_before_residual:
        raise CheckpointError(
            f"the drafter adds attention to the normed hidden state ({NORM_BEFORE_RESIDUAL}), and {who} to the bare "
            "one: choose vllm or speculators"
        )


def _check(server: str, drafter: Eagle3Source) -> None:
    if drafter.config.qkv_bias:
        raise CheckpointError(f"the drafter has biases in q, k and v, which {server}'s EAGLE-3 has no place for")
    if (count := len(drafter.config.feature_layers)) != NUM_FEATURES:
        raise CheckpointError(f"the drafter reads {count} layers, and {server}'s EAGLE-3 reads {NUM_FEATURES}")


def _write(drafter: Eagle3Source, fields: dict[str, Any], notes: list[str]) -> Written:
    files = {WEIGHTS: tensor_bytes(_tensors(drafter)), CONFIG: json_bytes(_config(drafter) | fields)}
    return Written(files, notes)


def _tensors(drafter: Eagle3Source) -> dict[str, Tensor]:
    tensors, ids = dict(drafter.weights) | drafter.own_embedding(), drafter.draft_ids()
    if ids is not None:
        tensors[TOKEN_MAP] = ids - torch.arange(len(ids))
        drafted = torch.zeros(drafter.config.vocab_size, dtype=torch.bool)
        tensors[IS_DRAFTED] = drafted.index_fill(0, ids, True)
    return tensors


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
