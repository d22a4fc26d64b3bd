"""Which transformers architectures can be a target: one pass over a tree, and rollback of all but one path of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from explorer.errors import CheckpointError

MAX_LAYERS = 1000  # building the module of a hostile config would otherwise take for ever
_PLAIN_LAYERS = {"full_attention", "sliding_attention"}
# Config fields that, when set, mean a cache or attention that a tree of rows does not fit.
_REFUSED_FIELDS = {
    "kv_lora_rank": "a latent key-value cache",
    "num_kv_shared_layers": "layers that share key-value caches",
    "attention_chunk_size": "chunked attention",
    "attn_logit_softcapping": "soft-capped attention scores",
    "cross_attention_layers": "cross-attention layers",
    "alibi": "ALiBi position biases",
}
_NUMBERS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings")


def check_numbers(config: Any, what: str) -> None:
    """Raise CheckpointError where a size in the (text) config is missing or absurd."""
    wrong = [
        f"{name} is {value!r}"
        for name in _NUMBERS
        if not isinstance(value := getattr(config, name, None), int) or isinstance(value, bool) or value < 1
    ]
    if wrong or config.num_hidden_layers > MAX_LAYERS:
        wrong = wrong or [f"num_hidden_layers is {config.num_hidden_layers}"]
        raise CheckpointError(f"{what}: config.json is not usable: {', '.join(wrong)}")


def refuse_unsupported(config: Any, model_class: type, what: str) -> None:
    """Raise CheckpointError that names why tree attention or rollback would be wrong for this architecture.

    config: the text config. model_class: the transformers class it loads as.
    """
    reason = _class_reason(model_class) or _layer_reason(config) or _field_reason(config)
    if reason:
        raise CheckpointError(
            f"{what}: the architecture {config.model_type!r} is not supported because of {reason}; choose a target "
            "with ordinary attention over its whole context (Llama, Mistral v0.2 and later, Qwen2, Qwen3, SmolLM, ...)"
        )


def refuse_sinks(parameter_names: Iterable[str], model_type: str, what: str) -> None:
    """Raise CheckpointError for learned attention sinks: our attention has no such column."""
    if any(re.search(r"sink", name) for name in parameter_names):
        raise CheckpointError(f"{what}: the architecture {model_type!r} is not supported because of attention sinks")


def _class_reason(model_class: type) -> str | None:
    if getattr(model_class, "_is_stateful", False):
        return "recurrent layers, whose state cannot be rolled back"
    if not getattr(model_class, "_supports_attention_backend", False):
        return "attention that cannot be replaced through transformers' attention interface"
    return None


def _layer_reason(config: Any) -> str | None:
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds - _PLAIN_LAYERS:
        return f"layers of kind {', '.join(sorted(kinds - _PLAIN_LAYERS))}"
    window, context = getattr(config, "sliding_window", None), getattr(config, "max_position_embeddings", None)
    slides = "sliding_attention" in kinds if kinds else window and getattr(config, "use_sliding_window", True)
    if slides and not (isinstance(window, int) and isinstance(context, int) and window >= context):
        return f"a sliding window ({window}) shorter than its context ({context})"
    return None


def _field_reason(config: Any) -> str | None:
    if getattr(config, "is_encoder_decoder", False):
        return "an encoder"
    return next((why for field, why in _REFUSED_FIELDS.items() if getattr(config, field, None)), None)
