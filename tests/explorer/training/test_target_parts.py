"""What recipes take from a target: whole matrices in float32 on the CPU, and shapes that fit."""

from __future__ import annotations

from dataclasses import replace

import torch

from explorer.training.target_parts import eagle3_config, eagle_config, lent_weights
from tests.support.tiny import VOCAB, tiny_model
from tests.support.training import tiny_loaded_target


def test_what_is_lent_is_float32_on_the_cpu() -> None:
    target = replace(tiny_loaded_target(), model=tiny_model().to(torch.bfloat16))
    embedding, lm_head = lent_weights(target)
    for found, layer in (
        (embedding, target.model.get_input_embeddings()),
        (lm_head, target.model.get_output_embeddings()),
    ):
        assert (found.dtype, found.device.type, found.requires_grad) == (torch.float32, "cpu", False)
        assert torch.equal(found, layer.weight.float())


def test_a_draft_vocabulary_of_all_tokens_is_none() -> None:
    """Layouts and servers take a draft vocabulary for a part of the tokens."""
    target = tiny_loaded_target()
    for count, expected in ((VOCAB, None), (VOCAB - 1, VOCAB - 1)):
        made = eagle_config(target, count)
        assert (made.draft_vocab_size, made.vocab_size, made.fc_bias) == (expected, VOCAB, False)
        made3 = eagle3_config(target, count, (0, 1))
        assert (made3.draft_vocab_size, made3.feature_layers) == (expected, (0, 1))
