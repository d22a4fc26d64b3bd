"""EAGLE-1 and EAGLE-2 drafters: the same weights, EAGLE-2 only drafts with them differently.

Source: `eagle/model/cnets1.py` and `eagle/model/configs.py` of SafeAILab/EAGLE; ``d2t`` as EAGLE-3 stores it. The same
weights under speculators' names: see speculators_eagle.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from explorer.checkpoints.drafter import (
    LoadedDrafter,
    TargetFacts,
    check_token_ids,
    describe,
    fill,
    name_of,
    require_floats,
)
from explorer.checkpoints.files import (
    Report,
    expected_shapes,
    locate,
    parsing,
    read_config,
    read_tensors,
    shapes_of,
    weight_files,
)
from explorer.checkpoints.speculators_eagle import from_speculators
from explorer.checkpoints.support import MAX_LAYERS
from explorer.models.eagle_layer import EagleConfig, EagleDrafter

_EMBEDDING, _TOKEN_MAP, _KEYS = "embed_tokens.weight", "d2t", "layers.0.self_attn.k_proj.weight"
_DERIVED = re.compile(r"t2d|.*rotary_emb\.inv_freq")  # what other fields say already
_TOLD_BY_TENSORS = ("num_key_value_heads", "num_hidden_layers")  # may be missing, and the layers may be the target's
_ROPE_FIELDS = ("rope_scaling", "rope_parameters")
_LAYER = re.compile(r"layers\.(\d{1,4})\.")
_EAGLE3 = re.compile(r"midlayer\.|.*hidden_norm\.")  # tensors that only EAGLE-3 has


def load_eagle(source: str, target: TargetFacts) -> LoadedDrafter:
    """Read an EAGLE-1/2 drafter strictly and bind it to the target's embedding and LM head.

    ``module`` is an EagleDrafter. Raises one CheckpointError that lists all that is wrong.
    """
    folder = locate(source, "EAGLE drafter", ("*.safetensors", "*.bin"))
    tensors = {name: t for name, t in read_tensors(weight_files(folder)).items() if not _DERIVED.fullmatch(name)}
    report = Report(f"EAGLE drafter {name_of(source)!r}")
    if eagle3 := sorted(filter(_EAGLE3.match, tensors)):
        report.add(
            f"it is an EAGLE-3 drafter (it has {eagle3[0]}), which reads three layers of the target and is not "
            "supported; choose the target's EAGLE drafter, which eagle1 and eagle2 share"
        )
        report.raise_if_any()
    raw, tensors = from_speculators(read_config(folder), tensors, report)
    config = _to_eagle_config(_read_numbers(raw, report), tensors)
    embedding = tensors.pop(_EMBEDDING, None)
    _check(config, tensors, embedding, target, report)
    report.raise_if_any()
    module = EagleDrafter(config)
    fill(module, tensors, target)
    module.bind(_share_embedding(embedding, target), target.lm_head.weight)
    return LoadedDrafter(module, describe(source, module))


def _read_numbers(raw: dict[str, Any], report: Report) -> dict[str, Any]:
    """The fields of config.json that shape the drafter, defaults as the reference has them; raises on unusable ones."""
    rope: dict[str, Any] = next((raw[name] for name in _ROPE_FIELDS if isinstance(raw.get(name), dict)), {})
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        report.add(f"rope scaling {rope} is not supported in a drafter")
    numbers: dict[str, Any] = {
        "hidden_size": raw.get("hidden_size"),
        "intermediate_size": raw.get("intermediate_size"),
        "num_attention_heads": raw.get("num_attention_heads"),
        "vocab_size": raw.get("vocab_size"),
        "max_position_embeddings": raw.get("max_position_embeddings", 2048),
    }
    numbers |= {name: raw[name] for name in _TOLD_BY_TENSORS if raw.get(name) is not None}
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            report.add(f"config.json: {name} must be a positive whole number, found {value!r}")
    if isinstance(layers := numbers.pop("num_hidden_layers", 1), int) and layers > MAX_LAYERS:
        report.add(f"config.json: num_hidden_layers is {layers}")
    floats = {
        "rope_theta": raw.get("rope_theta", rope.get("rope_theta", 10000.0)),
        "rms_norm_eps": raw.get("rms_norm_eps", 1e-6),
    }
    for name, value in floats.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            report.add(f"config.json: {name} must be a positive number, found {value!r}")
    report.raise_if_any()
    return numbers | floats | {name: raw.get(name) for name in ("bias", "qkv_bias", "hidden_act", "draft_vocab_size")}


def _to_eagle_config(numbers: dict[str, Any], tensors: dict[str, Tensor]) -> EagleConfig:
    """Layers and draft vocabulary are as the tensors say; so are biases and KV heads where config.json says nothing."""
    bias, qkv_bias = numbers.pop("bias"), numbers.pop("qkv_bias")
    listed, token_map = numbers.pop("draft_vocab_size"), tensors.get(_TOKEN_MAP)
    reduced = listed if isinstance(listed, int) and listed != numbers["vocab_size"] else None
    layers = {int(match[1]) for name in tensors if (match := _LAYER.match(name))}
    numbers.setdefault("num_key_value_heads", _count_kv_heads(numbers, tensors))
    return EagleConfig(
        num_layers=1 + max(layers, default=0),
        **numbers | {"hidden_act": numbers["hidden_act"] or "silu"},
        fc_bias="fc.bias" in tensors if bias is None else bool(bias),
        qkv_bias="layers.0.self_attn.q_proj.bias" in tensors if qkv_bias is None else bool(qkv_bias),
        draft_vocab_size=reduced if token_map is None else token_map.numel(),
    )


def _count_kv_heads(numbers: dict[str, Any], tensors: dict[str, Tensor]) -> int:
    """KV heads by the rows of the first key projection; as many as attention heads where it does not tell."""
    heads: int = numbers["num_attention_heads"]
    keys, head_dim = tensors.get(_KEYS), max(1, numbers["hidden_size"] // heads)
    is_telling = keys is not None and keys.dim() == 2 and len(keys) >= head_dim and len(keys) % head_dim == 0
    return len(keys) // head_dim if keys is not None and is_telling else heads


def _check(
    config: EagleConfig, tensors: dict[str, Tensor], embedding: Tensor | None, target: TargetFacts, report: Report
) -> None:
    if config.num_layers > len(tensors):
        report.add(f"it has layers up to {config.num_layers - 1}, but only {len(tensors)} tensors")
    elif config.hidden_size % config.num_attention_heads or config.num_attention_heads % config.num_key_value_heads:
        report.add("config.json: hidden_size, num_attention_heads and num_key_value_heads do not divide")
    else:
        with parsing("the EAGLE drafter's config.json"):
            expected = expected_shapes(lambda: EagleDrafter(config))
        report.compare(expected, shapes_of(tensors))
    require_floats(report, {name: t for name, t in tensors.items() if name != _TOKEN_MAP})
    report.require_equal("hidden size", config.hidden_size, target.hidden_size)
    report.require_equal("vocabulary", config.vocab_size, target.vocab_size)
    if embedding is not None and tuple(embedding.shape) != (config.vocab_size, config.hidden_size):
        report.add(
            f"{_EMBEDDING} has shape {list(embedding.shape)}, expected {[config.vocab_size, config.hidden_size]}"
        )
    if (token_map := tensors.get(_TOKEN_MAP)) is not None:
        _check_token_map(token_map, config.vocab_size, report)


def _check_token_map(token_map: Tensor, vocab_size: int, report: Report) -> None:
    """``d2t`` [draft vocabulary] int64: target id = draft id + d2t[draft id], every target id at most once."""
    is_list = token_map.dtype == torch.int64 and token_map.dim() == 1
    check_token_ids(_TOKEN_MAP, token_map + torch.arange(len(token_map)) if is_list else token_map, vocab_size, report)


def _share_embedding(embedding: Tensor | None, target: TargetFacts) -> Tensor:
    """The checkpoint's own embedding where it differs from the target's; most files hold a mere copy."""
    borrowed = target.embed_tokens.weight
    if embedding is None:
        return borrowed
    own = embedding.to(device=target.device, dtype=target.dtype)
    return borrowed if torch.equal(own, borrowed) else own
