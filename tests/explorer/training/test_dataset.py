"""Batches: padding, answer masks, and epochs that depend on the seed alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.errors import SettingError
from explorer.training.dataset import Batch, read_features
from tests.support.training import tiny_features


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


def test_no_features_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="train features"):
        read_features(tmp_path)
