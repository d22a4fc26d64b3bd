"""Architectures are refused by name, with the reason, from config and class alone: no weights are needed to know."""

from __future__ import annotations

from typing import Any

import pytest
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from explorer.checkpoints.support import check_numbers, refuse_sinks, refuse_unsupported
from explorer.errors import CheckpointError


def judge(model_type: str, **changes: Any) -> None:
    config = CONFIG_MAPPING[model_type](**changes)
    refuse_unsupported(config.get_text_config(), MODEL_FOR_CAUSAL_LM_MAPPING[type(config)], "target 'x'")


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("llama", {}),
        ("mistral", {"sliding_window": None}),
        ("mistral", {"sliding_window": 4096, "max_position_embeddings": 4096}),
        ("qwen2", {}),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 16}),
        ("qwen3", {}),
        ("smollm3", {}),
        ("gemma", {}),
        ("gpt2", {}),
    ],
)
def test_ordinary_attention_is_taken(model_type: str, changes: dict[str, Any]) -> None:
    judge(model_type, **changes)


@pytest.mark.parametrize(
    ("model_type", "reason"),
    [
        ("mistral", "a sliding window (4096) shorter than its context (131072)"),
        ("gemma2", "a sliding window (4096) shorter than its context (8192)"),
        ("gpt_oss", "a sliding window (128) shorter"),
        ("mamba", "recurrent layers"),
        ("recurrent_gemma", "recurrent layers"),
        ("qwen3_next", "recurrent layers"),
        ("lfm3", "layers of kind conv"),
        ("minimax", "layers of kind linear_attention"),
        ("llama4_text", "layers of kind chunked_attention"),
        ("deepseek_v3", "a latent key-value cache"),
        ("bloom", "attention that cannot be replaced"),
    ],
)
def test_what_breaks_trees_or_rollback_is_refused_by_name(model_type: str, reason: str) -> None:
    if model_type not in CONFIG_MAPPING:
        pytest.skip(f"this transformers ({transformers.__version__}) has no {model_type}")
    with pytest.raises(CheckpointError) as caught:
        judge(model_type)
    assert f"the architecture {model_type!r} is not supported because of {reason}" in str(caught.value)


def test_attention_sinks_are_seen_in_the_parameters() -> None:
    refuse_sinks(["model.layers.0.self_attn.q_proj.weight"], "llama", "target 'x'")
    with pytest.raises(CheckpointError, match="'gpt_oss' is not supported because of attention sinks"):
        refuse_sinks(["model.layers.0.self_attn.sinks"], "gpt_oss", "target 'x'")


@pytest.mark.parametrize(
    "changes", [{"hidden_size": 0}, {"vocab_size": -5}, {"num_hidden_layers": 1001}, {"max_position_embeddings": 0}]
)
def test_absurd_sizes_are_named(changes: dict[str, int]) -> None:
    config = CONFIG_MAPPING["llama"]()
    for name, value in changes.items():
        setattr(config, name, value)
        with pytest.raises(CheckpointError, match=f"{name} is {value}"):
            check_numbers(config, "target 'x'")
