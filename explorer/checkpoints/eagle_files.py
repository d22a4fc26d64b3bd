"""What reading EAGLE drafters of every kind shares: numbers of config.json, the draft vocabulary, the embedding.

Source: `eagle/model/configs.py` and `eagle/model/ea_model.py` of SafeAILab/EAGLE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from explorer.checkpoints.drafter import TargetFacts, check_token_ids
from explorer.checkpoints.files import Report
from explorer.checkpoints.support import MAX_LAYERS
from explorer.models.eagle_layer import DrafterShape

EMBEDDING, TOKEN_MAP = "embed_tokens.weight", "d2t"
DERIVED = re.compile(r"t2d|.*rotary_emb\.inv_freq")  # what other fields say already
TOLD_BY_TENSORS = ("num_key_value_heads", "num_hidden_layers")  # may be missing, and the layers may be the target's
MAX_SIZE = 2**31 - 1  # of any field; arithmetic on tensors ends somewhere above
_ROPE_FIELDS = ("rope_scaling", "rope_parameters")
_EAGLE3 = re.compile(r"midlayer\.|.*hidden_norm\.")  # tensors that only EAGLE-3 has


def find_eagle3(names: Iterable[str]) -> str | None:
    """A tensor that only EAGLE-3 drafters have, None where there is none."""
    return min(filter(_EAGLE3.match, names), default=None)


def read_numbers(raw: Mapping[str, Any], report: Report, optional: Sequence[str] = TOLD_BY_TENSORS) -> dict[str, Any]:
    """The fields of config.json that shape the drafter, defaults as the reference has them; raises on unusable ones.

    optional: whole numbers that need not be there.
    """
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
    numbers |= {name: raw[name] for name in optional if raw.get(name) is not None}
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            report.add(f"config.json: {name} must be a positive whole number, found {value!r}")
        elif value > MAX_SIZE:
            report.add(f"config.json: {name} is {value}, larger than any in use")
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


def count_kv_heads(numbers: Mapping[str, Any], keys: Tensor | None) -> int:
    """KV heads by the rows of the first key projection; as many as attention heads where it does not tell."""
    heads: int = numbers["num_attention_heads"]
    head_dim = numbers.get("head_dim") or max(1, numbers["hidden_size"] // heads)
    is_telling = keys is not None and keys.dim() == 2 and len(keys) >= head_dim and len(keys) % head_dim == 0
    return len(keys) // head_dim if keys is not None and is_telling else heads


def divides(config: DrafterShape, report: Report) -> bool:
    """Whether heads and sizes go into each other; notes it where not."""
    has_whole_heads = config.head_dim is not None or config.hidden_size % config.num_attention_heads == 0
    if has_whole_heads and config.num_attention_heads % config.num_key_value_heads == 0:
        return True
    report.add("config.json: hidden_size, num_attention_heads and num_key_value_heads do not divide")
    return False


def check_embedding(embedding: Tensor | None, config: DrafterShape, report: Report) -> None:
    """Note an embedding of the checkpoint's own that has the wrong shape."""
    if embedding is not None and tuple(embedding.shape) != (config.vocab_size, config.hidden_size):
        report.add(f"{EMBEDDING} has shape {list(embedding.shape)}, expected {[config.vocab_size, config.hidden_size]}")


def check_token_map(token_map: Tensor, vocab_size: int, report: Report) -> None:
    """``d2t`` [draft vocabulary] int64: target id = draft id + d2t[draft id], every target id at most once."""
    is_list = token_map.dtype == torch.int64 and token_map.dim() == 1
    check_token_ids(TOKEN_MAP, token_map + torch.arange(len(token_map)) if is_list else token_map, vocab_size, report)


def share_embedding(embedding: Tensor | None, target: TargetFacts) -> Tensor:
    """The checkpoint's own embedding where it differs from the target's; most files hold a mere copy."""
    borrowed = target.embed_tokens.weight
    if embedding is None:
        return borrowed
    own = embedding.to(device=target.device, dtype=target.dtype)
    return borrowed if torch.equal(own, borrowed) else own
