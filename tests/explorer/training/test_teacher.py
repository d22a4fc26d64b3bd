"""The target's own wishes, read off its hidden states."""

from __future__ import annotations

from pathlib import Path

import torch

from explorer.training.teacher import HeldOut, soft_cross_entropy, top_tokens
from tests.support.tiny import tiny_model
from tests.support.training import tiny_features


def test_top_tokens_covers_the_whole_vocabulary_in_pieces() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden, lm_head = torch.randn(30, 20, 8, generator=generator), torch.randn(50, 8, generator=generator)
    assert torch.equal(top_tokens(hidden, lm_head, 3), (hidden @ lm_head.T).topk(3).indices)
    assert top_tokens(hidden[:0], lm_head, 3).shape == (0, 20, 3)


def test_soft_cross_entropy_of_a_certain_target_is_plain_cross_entropy() -> None:
    logits, labels = torch.randn(4, 9), torch.tensor([1, 8, 0, 3])
    wanted = torch.nn.functional.one_hot(labels, 9).float()
    assert torch.allclose(soft_cross_entropy(logits, wanted), torch.nn.functional.cross_entropy(logits, labels))


def test_held_out_best_is_the_targets_argmax(tmp_path: Path) -> None:
    model = tiny_model()
    held_out = HeldOut(tiny_features(tmp_path), model.get_output_embeddings().weight)
    model.set_attn_implementation("sdpa")
    batch, best = next(held_out.pairs(1))
    with torch.inference_mode():
        expected = model(input_ids=batch.tokens).logits.argmax(-1)
    row = int(batch.lens.argmax())
    agreement = (best[row] == expected[row]).float().mean()
    assert agreement > 0.95  # float16 on disk may swap near ties
