"""Batches: padding, answer masks, and epochs that depend on the seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.errors import SettingError
from explorer.training.dataset import Batch, read_features
from tests.support.training import tiny_corpus, tiny_features


def test_answer_mask_knows_both_ends() -> None:
    batch = Batch(
        torch.zeros(2, 6, dtype=torch.int64), torch.zeros(2, 6, 1), torch.tensor([6, 4]), torch.tensor([3, 2])
    )
    # Position t counts from the last prompt token on, while token t + 2 exists.
    assert batch.answer_mask(2).int().tolist() == [[0, 0, 1, 1, 0, 0], [0, 1, 0, 0, 0, 0]]


def test_an_epoch_holds_every_conversation_once(tmp_path: Path) -> None:
    data = tiny_features(tmp_path)
    batches = data.batch_indices(64, seed=5)
    assert sorted(np.concatenate(batches).tolist()) == list(range(60))
    assert all(map(np.array_equal, batches, data.batch_indices(64, seed=5)))
    batch = data.batch(batches[0])
    assert batch.tokens.numel() <= 64
    assert batch.tokens[0, : batch.lens[0]].tolist() == data.corpus.conversation(batches[0][0]).tolist()


def test_batches_carry_what_entered_the_layers(tmp_path: Path) -> None:
    data = tiny_features(tmp_path, layers=(0, 1))
    batch = data.batch(data.batch_indices(64, 0)[0])
    assert batch.layers.shape == (*batch.tokens.shape, 64)
    index = data.batch_indices(64, 0)[0][0]
    start = data.corpus.offsets[index]
    assert data.layers is not None
    assert batch.layers[0, 3].tolist() == data.layers[start + 3].astype(np.float32).tolist()
    assert tiny_features(tmp_path).batch(np.array([0])).layers.numel() == 0


def test_layers_of_other_text_are_refused(tmp_path: Path) -> None:
    tiny_features(tmp_path / "one")
    tiny_features(tmp_path / "two", tiny_corpus(seed=3), layers=(0,))
    with pytest.raises(SettingError, match="features of different text"):
        read_features(tmp_path / "one", layers=tmp_path / "two" / "layers")


def test_no_features_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="train features"):
        read_features(tmp_path)
