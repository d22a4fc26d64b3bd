"""EAGLE-3's recipe: tokens it cannot propose have no loss, deeper steps weigh less, and it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.errors import SettingError
from explorer.models.eagle3_layer import Eagle3Config
from explorer.training.dataset import FeatureSet
from explorer.training.eagle3 import Eagle3Options, Eagle3Recipe
from explorer.training.loop import LoopOptions, train
from explorer.training.unrolled import unroll
from tests.support.tiny import VOCAB, tiny_model
from tests.support.training import tiny_parts

DRAFT_TOKENS = torch.tensor([7, 3, 60, 5, 41, *range(10, 40)])
LAYERS = (0, 1)


def make_recipe(
    held_out: FeatureSet, options: Eagle3Options, draft_tokens: torch.Tensor = DRAFT_TOKENS
) -> Eagle3Recipe:
    model = tiny_model()
    torch.manual_seed(0)
    reduced = len(draft_tokens) if len(draft_tokens) < VOCAB else None
    config = Eagle3Config(32, 48, 4, 2, VOCAB, draft_vocab_size=reduced, feature_layers=LAYERS)
    embedding, lm_head = (m.weight.detach() for m in (model.get_input_embeddings(), model.get_output_embeddings()))
    return Eagle3Recipe(config, draft_tokens, embedding, lm_head, held_out, options)


@pytest.fixture
def parts(tmp_path: Path) -> tuple[FeatureSet, FeatureSet]:
    return tiny_parts(tmp_path / "features", LAYERS)


def test_the_draft_vocabulary_ascends_and_its_head_begins_as_the_targets(
    parts: tuple[FeatureSet, FeatureSet],
) -> None:
    network = make_recipe(parts[1], Eagle3Options()).network
    mapped = network.to_target(torch.arange(len(DRAFT_TOKENS)))
    assert mapped.tolist() == sorted(DRAFT_TOKENS.tolist())
    assert torch.equal(network.lm_head.weight, tiny_model().get_output_embeddings().weight[mapped])
    assert "embedding" not in network.state_dict()


@torch.no_grad()
def test_a_folded_drafter_reads_features_as_the_target_gives_them(parts: tuple[FeatureSet, FeatureSet]) -> None:
    """While it is trained they are brought to one size, each layer's by its own."""
    assert parts[1].layers is not None
    parts[1].layers[:, 32:] *= 50
    recipe = make_recipe(parts[1], Eagle3Options())
    scale, batch = recipe._scale, parts[1].batch(parts[1].batch_indices(64, 0)[0])
    assert scale.shape == (64,)
    assert len(scale.unique()) == 2
    shown = (batch.layers / scale)[0, : batch.lens[0]].abs()
    assert 0.5 < shown[:, :32].mean() < 2 and 0.5 < shown[:, 32:].mean() < 2
    trained = list(unroll(recipe.network, batch, 2, scale))
    recipe.fold()
    for before, after in zip(trained, unroll(recipe.network, batch, 2), strict=True):
        torch.testing.assert_close(before, after, atol=1e-4, rtol=1e-4)
    recipe.unfold()
    for before, after in zip(trained, unroll(recipe.network, batch, 2, scale), strict=True):
        torch.testing.assert_close(before, after, atol=1e-4, rtol=1e-4)


def test_tokens_outside_the_draft_vocabulary_have_no_loss(parts: tuple[FeatureSet, FeatureSet]) -> None:
    batch = parts[0].batch(parts[0].batch_indices(128, 0)[0])
    written = set(batch.tokens.flatten().tolist())
    never = torch.tensor([token for token in range(VOCAB) if token not in written][:8])
    recipe = make_recipe(parts[1], Eagle3Options(), never)
    loss = recipe.loss(batch, torch.Generator(), 0.0)
    loss.backward()
    assert loss.item() == 0
    full = make_recipe(parts[1], Eagle3Options(num_steps=1), torch.arange(VOCAB))
    assert full.network.config.draft_vocab_size is None
    assert full.loss(batch, torch.Generator(), 0.0).item() > 0


def test_the_loss_is_the_cross_entropy_over_the_draft_vocabulary(parts: tuple[FeatureSet, FeatureSet]) -> None:
    """Written out position by position, with every drafted token a candidate."""
    recipe = make_recipe(parts[1], Eagle3Options(num_steps=2, decay=0.5))
    batch = parts[0].batch(parts[0].batch_indices(64, 0)[0])
    known = sorted(DRAFT_TOKENS.tolist())
    rows = tiny_model().get_output_embeddings().weight.detach()[known]
    expected = 0.0
    for step, hidden in enumerate(unroll(recipe.network, batch, 2, recipe._scale)):
        found = [
            -(batch.features[index, row + 1 + step] @ rows.T).softmax(-1)
            @ (recipe.network.norm(hidden[index, row]) @ rows.T).log_softmax(-1)
            for index in range(len(batch.tokens))
            for row in range(int(batch.start[index]) - 1, int(batch.lens[index]) - 2 - step)
            if int(batch.tokens[index, row + 2 + step]) in known
        ]
        assert len(found) > 5
        expected += 0.5**step * torch.stack(found).mean().item()
    assert recipe.loss(batch, torch.Generator(), 0.0).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("own_head", [False, True])
def test_the_head_learns_only_where_it_is_its_own(
    parts: tuple[FeatureSet, FeatureSet], tmp_path: Path, own_head: bool
) -> None:
    recipe = make_recipe(parts[1], Eagle3Options(own_head=own_head))
    before = recipe.network.lm_head.weight.detach().clone()
    train(recipe, parts[0], LoopOptions(epochs=1, batch_tokens=256, warmup_steps=1), tmp_path / "run")
    assert torch.equal(recipe.network.lm_head.weight, before) is not own_head


def test_a_head_of_another_width_cannot_be_the_targets(parts: tuple[FeatureSet, FeatureSet]) -> None:
    config = Eagle3Config(16, 48, 4, 2, VOCAB, feature_layers=LAYERS, target_hidden_size=32)
    embedding, lm_head = torch.zeros(VOCAB, 16), torch.zeros(VOCAB, 32)
    with pytest.raises(SettingError, match="own_head"):
        Eagle3Recipe(config, torch.arange(VOCAB), embedding, lm_head, parts[1], Eagle3Options())
    options = Eagle3Options(own_head=True)
    assert Eagle3Recipe(config, torch.arange(VOCAB), embedding, lm_head, parts[1], options).network.config is config


def test_steps_are_weighed_by_their_depth(parts: tuple[FeatureSet, FeatureSet]) -> None:
    batch = parts[0].batch(parts[0].batch_indices(128, 0)[0])

    def loss(num_steps: int, decay: float) -> float:
        return make_recipe(parts[1], Eagle3Options(num_steps, decay)).loss(batch, torch.Generator(), 0.0).item()

    first, second = loss(1, 1.0), loss(2, 1.0) - loss(1, 1.0)
    assert second > 0
    assert loss(2, 0.25) == pytest.approx(first + 0.25 * second, rel=1e-4)


def test_training_lowers_the_loss_and_raises_agreement(parts: tuple[FeatureSet, FeatureSet], tmp_path: Path) -> None:
    training, held_out = parts
    recipe = make_recipe(held_out, Eagle3Options(num_steps=3))
    batch = training.batch(training.batch_indices(512, 0)[0])
    loss_before = recipe.loss(batch, torch.Generator(), 0.0).item()
    agreement_before = recipe.depth_agreement(3)
    options = LoopOptions(epochs=12, batch_tokens=256, learning_rate=3e-3, warmup_steps=5, evaluate_every=1000)
    train(recipe, training, options, tmp_path / "run")
    assert recipe.loss(batch, torch.Generator(), 0.0).item() < 0.8 * loss_before
    agreement = recipe.depth_agreement(3)
    assert agreement[0] > agreement_before[0]
    assert all(0 <= value <= 1 for value in agreement)
