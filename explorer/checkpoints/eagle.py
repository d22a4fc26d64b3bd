"""EAGLE-1 and EAGLE-2 drafters: the same weights, EAGLE-2 only drafts with them differently.

Source: `eagle/model/cnets1.py` and `eagle/model/configs.py` of SafeAILab/EAGLE; ``d2t`` as EAGLE-3 stores it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.checkpoints.drafter import LoadedDrafter, TargetFacts, describe, fill, name_of, require_floats
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
from explorer.models.eagle_layer import EagleConfig, EagleDrafter

_EMBEDDING, _TOKEN_MAP = "embed_tokens.weight", "d2t"
_DERIVED = re.compile(r"t2d|.*rotary_emb\.inv_freq")  # what other fields say already
_ROPE_FIELDS = ("rope_scaling", "rope_parameters")


def load_eagle(source: str, target: TargetFacts) -> LoadedDrafter:
    """Read an EAGLE-1/2 drafter strictly and bind it to the target's embedding and LM head.

    ``module`` is an EagleDrafter. Raises one CheckpointError that lists all that is wrong.
    """
    folder = locate(source, "EAGLE drafter", ("*.safetensors", "*.bin"))
    tensors = {name: t for name, t in read_tensors(weight_files(folder)).items() if not _DERIVED.fullmatch(name)}
    report = Report(f"EAGLE drafter {name_of(source)!r}")
    if any(name.startswith("midlayer.") for name in tensors):
        report.add("it is an EAGLE-3 drafter (midlayer.* tensors), and EAGLE-1 or EAGLE-2 is wanted")
        report.raise_if_any()
    config = _to_eagle_config(_read_numbers(folder, report), tensors)
    embedding = tensors.pop(_EMBEDDING, None)
    _check(config, tensors, embedding, target, report)
    report.raise_if_any()
    module = EagleDrafter(config)
    fill(module, tensors, target)
    module.bind(_share_embedding(embedding, target), target.lm_head.weight)
    return LoadedDrafter(module, describe(source, module))


def _read_numbers(folder: Path, report: Report) -> dict[str, Any]:
    """The fields of config.json that shape the drafter, defaults as the reference has them; raises on unusable ones."""
    raw = read_config(folder)
    heads = raw.get("num_attention_heads")
    rope: dict[str, Any] = next((raw[name] for name in _ROPE_FIELDS if isinstance(raw.get(name), dict)), {})
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        report.add(f"rope scaling {rope} is not supported in a drafter")
    numbers: dict[str, Any] = {
        "hidden_size": raw.get("hidden_size"),
        "intermediate_size": raw.get("intermediate_size"),
        "num_attention_heads": heads,
        "num_key_value_heads": raw.get("num_key_value_heads", heads),
        "vocab_size": raw.get("vocab_size"),
        "num_layers": raw.get("num_hidden_layers", 1),
        "max_position_embeddings": raw.get("max_position_embeddings", 2048),
    }
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            report.add(f"config.json: {name} must be a positive whole number, found {value!r}")
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
    """Biases and the draft vocabulary are as config.json says, and where it says nothing, as the tensors say."""
    bias, qkv_bias = numbers.pop("bias"), numbers.pop("qkv_bias")
    listed, token_map = numbers.pop("draft_vocab_size"), tensors.get(_TOKEN_MAP)
    reduced = listed if isinstance(listed, int) and listed != numbers["vocab_size"] else None
    return EagleConfig(
        **numbers | {"hidden_act": numbers["hidden_act"] or "silu"},
        fc_bias="fc.bias" in tensors if bias is None else bool(bias),
        qkv_bias="layers.0.self_attn.q_proj.bias" in tensors if qkv_bias is None else bool(qkv_bias),
        draft_vocab_size=reduced if token_map is None else token_map.numel(),
    )


def _check(
    config: EagleConfig, tensors: dict[str, Tensor], embedding: Tensor | None, target: TargetFacts, report: Report
) -> None:
    if config.num_layers > len(tensors):
        report.add(f"config.json: {config.num_layers} layers, but only {len(tensors)} tensors")
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
    if token_map.dtype != torch.int64 or token_map.dim() != 1 or token_map.numel() == 0:
        report.add(f"{_TOKEN_MAP} must be a list of int64, found {list(token_map.shape)} {token_map.dtype}")
        return
    ids = torch.arange(token_map.numel()) + token_map
    if not bool(((ids >= 0) & (ids < vocab_size)).all()) or ids.unique().numel() != ids.numel():
        report.add(f"{_TOKEN_MAP} must map draft ids to different target ids below {vocab_size}")


def _share_embedding(embedding: Tensor | None, target: TargetFacts) -> Tensor:
    """The checkpoint's own embedding where it differs from the target's; most files hold a mere copy."""
    borrowed = target.embed_tokens.weight
    if embedding is None:
        return borrowed
    own = embedding.to(device=target.device, dtype=target.dtype)
    return borrowed if torch.equal(own, borrowed) else own
