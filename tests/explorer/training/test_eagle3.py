"""EAGLE-3's recipe: unrolled steps are what drafting does, tokens it cannot propose have no loss, and it learns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.models.eagle_layer import DraftCache
from explorer.training.dataset import FeatureSet
from explorer.training.eagle3 import Eagle3Options, Eagle3Recipe, unroll
from explorer.training.loop import LoopOptions, train
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


def test_unrolled_steps_are_what_drafting_predicts(parts: tuple[FeatureSet, FeatureSet]) -> None:
    """From every row: the true pairs up to it in the cache, then its own features one after another."""
    network = make_recipe(parts[1], Eagle3Options()).network
    batch = parts[0].batch(parts[0].batch_indices(64, 0)[0])
    with torch.no_grad():
        steps = list(unroll(network, batch, 4))
        for index in range(len(batch.tokens)):
            for row in range(int(batch.lens[index]) - 5):
                drafted = draft_along(network, batch.tokens[index], batch.layers[index], row, 4)
                for step, expected in enumerate(drafted):
                    torch.testing.assert_close(steps[step][index, row], expected, atol=1e-5, rtol=1e-4)


def draft_along(
    network: Eagle3Drafter, tokens: torch.Tensor, layers: torch.Tensor, row: int, num_steps: int
) -> list[torch.Tensor]:
    cache, positions = DraftCache(), torch.arange(row + 1)
    features = network.combine(layers[: row + 1])
    found = [network(tokens[1 : row + 2], features, positions, None, cache)[-1]]
    for step in range(1, num_steps):
        token = tokens[row + 1 + step : row + 2 + step]
        found.append(network(token, found[-1][None], torch.tensor([row + step]), None, cache)[0])
    return found


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
    lm_head = tiny_model().get_output_embeddings().weight
    wanted = set((batch.features @ lm_head.T).argmax(-1).flatten().tolist())
    never = torch.tensor([token for token in range(VOCAB) if token not in wanted][:8])
    recipe = make_recipe(parts[1], Eagle3Options(), never)
    loss = recipe.loss(batch, torch.Generator(), 0.0)
    loss.backward()
    assert loss.item() == 0
    full = make_recipe(parts[1], Eagle3Options(num_steps=1), torch.arange(VOCAB))
    assert full.network.config.draft_vocab_size is None
    assert full.loss(batch, torch.Generator(), 0.0).item() > 0


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
