"""EAGLE's recipe: it learns, its draft vocabulary maps back, and depth agreement means what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.models.eagle_layer import EagleConfig
from explorer.training.eagle import EagleOptions, EagleRecipe
from explorer.training.loop import LoopOptions, train
from tests.support.tiny import VOCAB, tiny_model
from tests.support.training import tiny_parts

DRAFT_TOKENS = torch.tensor([7, 3, 60, 5, 41, *range(10, 40)])


def make_recipe(folder: Path, options: EagleOptions) -> EagleRecipe:
    model = tiny_model()
    torch.manual_seed(0)
    config = EagleConfig(32, 48, 4, 2, VOCAB, fc_bias=False, draft_vocab_size=len(DRAFT_TOKENS))
    embedding, lm_head = (m.weight.detach() for m in (model.get_input_embeddings(), model.get_output_embeddings()))
    return EagleRecipe(config, DRAFT_TOKENS, embedding, lm_head, tiny_parts(folder)[1], options)


@pytest.fixture
def recipe(tmp_path: Path) -> EagleRecipe:
    return make_recipe(tmp_path / "features", EagleOptions(num_frequent=10, num_sampled=10))


def test_draft_ids_ascend_and_map_to_the_chosen_tokens(recipe: EagleRecipe) -> None:
    mapped = recipe.network.to_target(torch.arange(len(DRAFT_TOKENS)))
    assert mapped.tolist() == sorted(DRAFT_TOKENS.tolist())
    stored = recipe.network.state_dict()
    assert "d2t" in stored
    assert not [name for name in stored if "embed" in name or "head" in name]


def test_training_lowers_the_loss_and_raises_agreement(recipe: EagleRecipe, tmp_path: Path) -> None:
    training = tiny_parts(tmp_path / "features")[0]
    batch = training.batch(training.batch_indices(512, 0)[0])
    loss_before = recipe.loss(batch, torch.Generator().manual_seed(0), 0.0).item()
    agreement_before = recipe.depth_agreement(2)
    options = LoopOptions(epochs=12, batch_tokens=256, learning_rate=3e-3, warmup_steps=5, evaluate_every=1000)
    train(recipe, training, options, tmp_path / "run")
    assert recipe.loss(batch, torch.Generator().manual_seed(0), 0.0).item() < 0.8 * loss_before
    agreement = recipe.depth_agreement(2)
    assert agreement[0] > agreement_before[0]
    assert all(0 <= value <= 1 for value in agreement)


def test_own_features_change_the_input_only_late_in_the_run(tmp_path: Path) -> None:
    def losses(own_share: float, progress: float) -> float:
        options = EagleOptions(num_frequent=10, num_sampled=10, own_share=own_share, own_from=0.5)
        made = make_recipe(tmp_path / "features", options)
        data = tiny_parts(tmp_path / "features")[0]
        batch = data.batch(data.batch_indices(128, 0)[0])
        return made.loss(batch, torch.Generator().manual_seed(0), progress).item()

    assert losses(1.0, 0.2) == losses(0.0, 0.2)
    assert losses(1.0, 0.8) != losses(0.0, 0.8)


def test_the_loss_covers_exactly_the_draftable_answer_tokens(tmp_path: Path) -> None:
    data = tiny_parts(tmp_path / "features")[0]
    batch = data.batch(data.batch_indices(64, 0)[0])
    # The first answer token is known when drafting starts, so the pair at start - 1 = 3 is the first with a loss.
    mask = batch.answer_mask(2)
    assert mask[:, :3].sum() == 0
    assert mask[:, 3].all()
    for row, length in enumerate(batch.lens.tolist()):
        assert mask[row].sum() == length - 2 - 3
