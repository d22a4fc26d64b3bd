"""Drafters written in the layouts that other programs load: the published ones, vLLM's, SGLang's, speculators'.

A layout is a function from a drafter of one kind to files; every tensor keeps its bits and its dtype. What a layout
cannot hold is refused in one sentence, and what changes on the way is said in another. Sources: FasterDecoding/Medusa
(`medusa/train/train_legacy.py`), SafeAILab/EAGLE (`eagle/model/cnets1.py`, `configs.py`), vllm-project/vllm
(`vllm/model_executor/models/{medusa,llama_eagle,llama}.py`, `vllm/transformers_utils/configs/{medusa,eagle}.py`),
sgl-project/sglang (`python/sglang/srt/models/llama_eagle.py`, `srt/speculative/spec_utils.py`) and
vllm-project/speculators (`src/speculators/models/eagle.py`); the commits stand in tests/explorer/checkpoints. EAGLE-3
has a module of its own, eagle3_layouts.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from explorer.checkpoints import eagle3_layouts
from explorer.checkpoints.drafter_source import DrafterSource, EagleSource, MedusaSource
from explorer.checkpoints.speculators_eagle import MODEL_TYPE, header, to_speculators
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.checkpoints.vllm_medusa import TOKEN_MAP, vllm_name
from explorer.checkpoints.written import CONFIG, WEIGHTS, Written, dtype_of, json_bytes, llama_fields, tensor_bytes
from explorer.errors import CheckpointError

SGLANG_MAP = "token_map.pt"
SPECULATIVE_TOKENS = 5  # what speculators' own converter writes


def write_layout(layout: str, drafter: DrafterSource) -> Written:
    """The drafter in that layout; CheckpointError where the layout has no such drafters or cannot hold this one."""
    makers = LAYOUTS[layout].makers
    kind = drafter.kind
    if kind not in makers:
        able = ", ".join(name for name, other in LAYOUTS.items() if kind in other.makers)
        raise CheckpointError(f"the layout {layout} is not for {KINDS[kind]}; those go into {able}")
    return makers[kind](drafter)


def _medusa_a(drafter: MedusaSource) -> Written:
    if drafter.token_map is not None and drafter.has_matrices:
        raise CheckpointError(
            "the heads have a reduced vocabulary, and layout A has an LM matrix over the whole one: choose vllm"
        )
    tensors, notes = dict(drafter.tensors), []
    if drafter.token_map is not None:
        notes.append("the token map is left out: in layout A the heads draft from all tokens")
    if not drafter.has_matrices:
        for head in range(drafter.num_heads):
            tensors[f"{head}.{drafter.num_blocks}.weight"] = drafter.targets_head()
        notes.append("each head got the target's LM head as its own matrix, which is what it was read through")
    buffer = io.BytesIO()
    torch.save({name: tensor.contiguous() for name, tensor in tensors.items()}, buffer)
    return Written({"medusa_lm_head.pt": buffer.getvalue(), CONFIG: json_bytes(_medusa_config(drafter))}, notes)


def _medusa_b(drafter: MedusaSource) -> Written:
    notes = []
    if drafter.has_matrices:
        head = drafter.ends.lm_head.weight
        own = [tensor for name, tensor in drafter.tensors.items() if not drafter.is_block(name)]
        if not all(t.shape == head.shape and torch.equal(t, head.to(t.dtype)) for t in own):
            raise CheckpointError(
                "the heads have LM matrices of their own, and layout B reads all heads through the target's: "
                "choose medusa-a or vllm"
            )
        notes.append("the heads' matrices were copies of the target's LM head and are left out")
    blocks = {name: tensor for name, tensor in drafter.tensors.items() if drafter.is_block(name)}
    config = _medusa_config(drafter) | {"version": "2"}
    files = {"medusa_lm_head.safetensors": tensor_bytes(blocks), CONFIG: json_bytes(config)}
    if drafter.token_map is not None:
        files[TOKEN_MAP_FILE] = tensor_bytes({TOKEN_MAP: drafter.token_map})
        notes.append(f"{TOKEN_MAP_FILE} is this project's: elsewhere the heads draft from all tokens")
    return Written(files, notes)


def _medusa_config(drafter: MedusaSource) -> dict[str, Any]:
    return {
        "medusa_num_heads": drafter.num_heads,
        "medusa_num_layers": drafter.num_blocks,
        "base_model_name_or_path": drafter.base,
    }


def _vllm_medusa(drafter: MedusaSource) -> Written:
    tensors = {vllm_name(name): tensor for name, tensor in drafter.tensors.items()}
    config: dict[str, Any] = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": drafter.ends.hidden_size,
        "vocab_size": drafter.ends.vocab_size,
        "num_heads": drafter.num_heads,
        "num_hidden_layers": drafter.num_blocks,
        "medusa_fc_bias": True,
        "torch_dtype": dtype_of(drafter.tensors),
        "base_model_name_or_path": drafter.base,
    }
    notes = []
    if not drafter.has_matrices:
        head = drafter.targets_head()
        tensors["lm_head.weight"] = head if drafter.token_map is None else head[drafter.token_map]
        config["original_lm_head"] = True
        notes.append("the target's LM head is in the file once, for all heads: vLLM does not share its own")
    if drafter.token_map is not None:
        tensors[TOKEN_MAP] = drafter.token_map
        config["truncated_vocab_size"] = len(drafter.token_map)
    return Written({WEIGHTS: tensor_bytes(tensors), CONFIG: json_bytes(config)}, notes)


def _eagle(drafter: EagleSource) -> Written:
    """The published layout, embedding included: the reference takes it from sharded targets only."""
    tensors = drafter.weights | {"embed_tokens.weight": drafter.embedding_or_targets()}
    config = _llama_config(drafter) | {"bias": drafter.config.fc_bias, "qkv_bias": drafter.config.qkv_bias}
    return Written({WEIGHTS: tensor_bytes(tensors), CONFIG: json_bytes(config)}, _vocabulary_notes(drafter))


def _vllm_eagle(drafter: EagleSource) -> Written:
    """As published, but vLLM's fc has no bias, unknown tensors are errors, and ``bias`` means attention there."""
    tensors, notes = dict(drafter.weights) | drafter.own_embedding(), _vocabulary_notes(drafter) + _own(drafter)
    bias = tensors.pop("fc.bias", None)
    if bias is not None and bool(bias.any()):
        raise CheckpointError(
            "the drafter's fc has a bias, which vLLM's EAGLE has no place for: choose sglang or eagle"
        )
    config = _llama_config(drafter) | ({"qkv_bias": True} if drafter.config.qkv_bias else {})
    return Written({WEIGHTS: tensor_bytes(tensors), CONFIG: json_bytes(config)}, notes)


def _sglang_eagle(drafter: EagleSource) -> Written:
    """As published, with a class of SGLang's, a bias in fc, and the draft vocabulary as a token map beside it."""
    if drafter.config.qkv_bias:
        raise CheckpointError(
            "the drafter has biases in q, k and v alone, which SGLang's Llama drafter has no place for"
        )
    tensors, notes = dict(drafter.weights) | drafter.own_embedding(), _own(drafter)
    if "fc.bias" not in tensors:
        tensors["fc.bias"] = torch.zeros_like(tensors["fc.weight"][:, 0])
        notes.append("fc got a bias of zeros: SGLang's always has one, and would leave it as chance made it")
    files = {CONFIG: json_bytes(_llama_config(drafter) | {"architectures": ["LlamaForCausalLMEagle"]})}
    if (ids := drafter.draft_ids()) is not None:
        buffer = io.BytesIO()
        torch.save(ids.tolist(), buffer)
        files[SGLANG_MAP] = buffer.getvalue()
        notes.append(f"the draft vocabulary of {len(ids)} tokens is in {SGLANG_MAP}, for --speculative-token-map")
    return Written({WEIGHTS: tensor_bytes(tensors)} | files, notes)


def _speculators_eagle(drafter: EagleSource) -> Written:
    if drafter.config.num_layers != 1:
        raise CheckpointError(f"speculators' EAGLE has one layer, this one has {drafter.config.num_layers}")
    if drafter.config.qkv_bias:
        raise CheckpointError("the drafter has biases in q, k and v alone, which speculators' EAGLE has no place for")
    if drafter.own_embedding():
        raise CheckpointError("the drafter has an embedding of its own, and speculators' EAGLE takes the target's")
    tensors = {to_speculators(name): tensor for name, tensor in drafter.weights.items()}
    layer = _llama_config(drafter)
    for name in ("architectures", "base_model_name_or_path", "torch_dtype"):
        layer.pop(name)
    config = {
        "architectures": ["EagleSpeculator", "LlamaDecoderLayer"],
        **header(MODEL_TYPE, SPECULATIVE_TOKENS, drafter.base, drafter.ends.architectures),
        "transformer_layer_architecture": "LlamaDecoderLayer",
        "transformer_layer_config": layer,
        "layernorms": False,
        "fusion_bias": drafter.config.fc_bias,
        "torch_dtype": dtype_of(drafter.weights),
    }
    notes = [*_vocabulary_notes(drafter), "vLLM loads only EAGLE-3 in speculators' layout: for vLLM choose vllm"]
    return Written({WEIGHTS: tensor_bytes(tensors), CONFIG: json_bytes(config)}, notes)


def _llama_config(drafter: EagleSource) -> dict[str, Any]:
    """A Llama's config with the drafter's shape; nothing in it says ``bias``, which means other things elsewhere."""
    return llama_fields(drafter.config, drafter.base) | {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": dtype_of(drafter.weights),
    }


def _vocabulary_notes(drafter: EagleSource) -> list[str]:
    if drafter.config.draft_vocab_size is None:
        return []
    return [
        f"this layout has no draft vocabulary: it drafts over all {drafter.config.vocab_size} tokens of the target's "
        f"LM head in place of {drafter.config.draft_vocab_size}, which is slower and otherwise the same network"
    ]


def _own(drafter: EagleSource) -> list[str]:
    if not drafter.own_embedding():
        return []
    return [
        "the drafter's own embedding, which is not the target's, is in the file: a server that lends the target's does "
        "not read it, and drafts worse"
    ]


@dataclass(frozen=True)
class Layout:
    """A layout by name. makers: kind of drafter -> what writes it."""

    what: str
    makers: Mapping[str, Callable[[Any], Written]]


KINDS = {"medusa": "Medusa heads", "eagle": "EAGLE drafters", "eagle3": "EAGLE-3 drafters"}
LAYOUTS = {
    "medusa-a": Layout("Medusa's heads with LM matrices of their own", {"medusa": _medusa_a}),
    "medusa-b": Layout("Medusa's heads read through the target's LM head", {"medusa": _medusa_b}),
    "eagle": Layout("EAGLE as its authors publish it", {"eagle": _eagle, "eagle3": eagle3_layouts.published}),
    "vllm": Layout(
        "what vLLM loads", {"medusa": _vllm_medusa, "eagle": _vllm_eagle, "eagle3": eagle3_layouts.for_vllm}
    ),
    "sglang": Layout("what SGLang loads", {"eagle": _sglang_eagle, "eagle3": eagle3_layouts.for_sglang}),
    "speculators": Layout(
        "what the package speculators loads",
        {"eagle": _speculators_eagle, "eagle3": eagle3_layouts.for_speculators},
    ),
}
