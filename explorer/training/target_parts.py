"""What recipes take from their target: its embedding and LM head, and the shape of its layers."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from explorer.checkpoints.target import LoadedTarget
from explorer.models.eagle3_layer import Eagle3Config
from explorer.models.eagle_layer import EagleConfig


def lent_weights(target: LoadedTarget) -> tuple[Tensor, Tensor]:
    """The target's (embedding, LM head) [V, H] in float32 on the CPU, where recipes run, wherever the target is."""
    layers = target.model.get_input_embeddings(), target.model.get_output_embeddings()
    embedding, lm_head = (layer.weight.detach().float().cpu() for layer in layers)
    return embedding, lm_head


def eagle_config(target: LoadedTarget, draft_vocab_size: int) -> EagleConfig:
    """One layer of the target's own shape."""
    return EagleConfig(**_layer_shape(target, draft_vocab_size), fc_bias=False)


def eagle3_config(target: LoadedTarget, draft_vocab_size: int, layers: tuple[int, ...]) -> Eagle3Config:
    """One layer of the target's own shape but for its wider attention."""
    head_dim = getattr(target.model.config, "head_dim", None)
    return Eagle3Config(**_layer_shape(target, draft_vocab_size), head_dim=head_dim, feature_layers=layers)


def _layer_shape(target: LoadedTarget, draft_vocab_size: int) -> dict[str, Any]:
    shape = target.model.config
    same = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "vocab_size")
    fields = {name: getattr(shape, name) for name in (*same, "rms_norm_eps", "max_position_embeddings")}
    reduced = draft_vocab_size if draft_vocab_size < shape.vocab_size else None
    return fields | {"rope_theta": shape.rope_parameters["rope_theta"], "draft_vocab_size": reduced}
