"""Unrolled steps are what drafting does, at every row of a batch at once, and so is what they teach."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.models.eagle_layer import DraftCache
from explorer.training.dataset import Batch
from explorer.training.unrolled import UNROLLED, unroll
from tests.support.tiny import VOCAB, tiny_model
from tests.support.training import tiny_parts

NUM_STEPS = 4


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    training, _ = tiny_parts(tmp_path / "features", (0, 1))
    return training.batch(training.batch_indices(64, 0)[0])


def make_network() -> Eagle3Drafter:
    torch.manual_seed(0)
    network = Eagle3Drafter(Eagle3Config(32, 48, 4, 2, VOCAB, feature_layers=(0, 1)))
    network.bind(tiny_model().get_input_embeddings().weight)
    return network


def test_unrolled_steps_are_what_drafting_predicts(batch: Batch) -> None:
    """From every row: the true pairs up to it in the cache, then its own features one after another."""
    unrolled, drafting = make_network(), make_network()
    unrolled.attend_with(UNROLLED)
    with torch.no_grad():
        steps = list(unroll(unrolled, batch, NUM_STEPS))
        for index in range(len(batch.tokens)):
            for row in range(int(batch.lens[index]) - 1 - NUM_STEPS):
                drafted = draft_along(drafting, batch.tokens[index], batch.layers[index], row)
                for step, expected in enumerate(drafted):
                    torch.testing.assert_close(steps[step][index, row], expected, atol=1e-5, rtol=1e-4)


def test_gradients_are_those_of_drafting(batch: Batch) -> None:
    """Through every step back to the true features, of one row."""
    unrolled, drafting = make_network(), make_network()
    unrolled.attend_with(UNROLLED)
    torch.stack([step[0, 5] for step in unroll(unrolled, batch, NUM_STEPS)]).sum(0).square().sum().backward()
    torch.stack(draft_along(drafting, batch.tokens[0], batch.layers[0], 5)).sum(0).square().sum().backward()
    for name, parameter in unrolled.named_parameters():
        expected = dict(drafting.named_parameters())[name].grad
        if expected is not None:
            torch.testing.assert_close(parameter.grad, expected, atol=1e-4, rtol=1e-3, msg=name)


def test_more_steps_than_pairs_are_as_many_as_there_are(batch: Batch) -> None:
    network = make_network()
    network.attend_with(UNROLLED)
    num_pairs = batch.tokens.shape[1] - 1
    shapes = [hidden.shape[1] for hidden in unroll(network, batch, num_pairs + 3)]
    assert shapes == list(range(num_pairs, 0, -1))


def draft_along(network: Eagle3Drafter, tokens: torch.Tensor, layers: torch.Tensor, row: int) -> list[torch.Tensor]:
    cache, positions = DraftCache(), torch.arange(row + 1)
    features = network.combine(layers[: row + 1])
    found = [network(tokens[1 : row + 2], features, positions, None, cache)[-1]]
    for step in range(1, NUM_STEPS):
        token = tokens[row + 1 + step : row + 2 + step]
        found.append(network(token, found[-1][None], torch.tensor([row + step]), None, cache)[0])
    return found
