"""Medusa's recipe: heads start at the target's own guess, learn, and are measured against its argmax."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.training.loop import LoopOptions, train
from explorer.training.medusa import MedusaOptions, MedusaRecipe
from explorer.training.teacher import top_tokens
from tests.support.tiny import VOCAB, tiny_model
from tests.support.training import tiny_parts


@pytest.fixture
def recipe(tmp_path: Path) -> MedusaRecipe:
    held_out = tiny_parts(tmp_path / "features")[1]
    lm_head = tiny_model().get_output_embeddings().weight.detach()
    options = MedusaOptions(num_heads=2, num_frequent=20, num_sampled=20)
    return MedusaRecipe(lm_head, torch.arange(VOCAB), held_out, options)


def test_untrained_heads_repeat_the_target(recipe: MedusaRecipe) -> None:
    lm_head = tiny_model().get_output_embeddings().weight.detach()
    hidden = torch.randn(6, 32)
    for head in recipe.network:
        assert torch.equal(top_tokens(head(hidden), lm_head, 1), top_tokens(hidden, lm_head, 1))


def test_training_raises_agreement(recipe: MedusaRecipe, tmp_path: Path) -> None:
    training, _ = tiny_parts(tmp_path / "features")
    batch = training.batch(training.batch_indices(512, 0)[0])
    loss_before = recipe.loss(batch, torch.Generator().manual_seed(0), 0.0).item()
    before = recipe.rank_accuracy()
    options = LoopOptions(epochs=20, batch_tokens=256, learning_rate=1e-2, warmup_steps=5, evaluate_every=1000)
    train(recipe, training, options, tmp_path / "run")
    after = recipe.rank_accuracy()
    assert after.shape == (2, 10)
    assert recipe.loss(batch, torch.Generator().manual_seed(0), 0.0).item() < 0.85 * loss_before
    assert after[0].sum() > before[0].sum() + 0.1
    assert (after.sum(1) <= 1 + 1e-6).all()


def test_no_loss_flows_from_prompt_tokens(recipe: MedusaRecipe, tmp_path: Path) -> None:
    data, _ = tiny_parts(tmp_path / "features")
    batch = data.batch(data.batch_indices(64, 0)[0])
    base = recipe.loss(batch, torch.Generator().manual_seed(0), 0.0)
    batch.features[:, :2] += 1.0  # prompt positions before the last one: neither read nor predicted
    assert torch.equal(recipe.loss(batch, torch.Generator().manual_seed(0), 0.0), base)
    batch.features[:, 3] += 1.0
    assert not torch.equal(recipe.loss(batch, torch.Generator().manual_seed(0), 0.0), base)
