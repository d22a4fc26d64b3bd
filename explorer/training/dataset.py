"""Conversations with their features, cut into padded batches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from explorer.errors import SettingError
from explorer.training.corpus import FIELDS, Corpus
from explorer.training.features import batches_by_length
from explorer.training.storage import read_npz

# Lengths are sorted within a pool of this many random conversations: little padding, and batches still differ.
POOL_SIZE = 64


@dataclass(frozen=True)
class Batch:
    """Padded on the right. tokens int64 [B, T]; features float32 [B, T, H]; lens and start int64 [B]."""

    tokens: Tensor
    features: Tensor
    lens: Tensor
    start: Tensor

    def answer_mask(self, ahead: int) -> Tensor:
        """bool [B, T]: position t has seen the prompt's end (t >= start - 1) and token t + ahead exists."""
        positions = torch.arange(self.tokens.shape[1])[None]
        return (positions >= self.start[:, None] - 1) & (positions + ahead < self.lens[:, None])


@dataclass(frozen=True)
class FeatureSet:
    """A corpus and the target's hidden states over it, float16 [T, H], in memory."""

    corpus: Corpus
    features: np.ndarray

    def __len__(self) -> int:
        return len(self.corpus)

    def batch_indices(self, batch_tokens: int, seed: int) -> list[np.ndarray]:
        """One epoch: every conversation once, in seeded random batches of at most `batch_tokens` padded tokens."""
        random = np.random.default_rng(seed)
        order = random.permutation(len(self))
        batches: list[np.ndarray] = []
        for first in range(0, len(order), POOL_SIZE):
            pool = order[first : first + POOL_SIZE]
            batches += [pool[batch] for batch in batches_by_length(self.corpus.lens[pool], batch_tokens)]
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, indices: np.ndarray) -> Batch:
        """The named conversations, padded to the longest."""
        offsets, lens = self.corpus.offsets, self.corpus.lens[indices].astype(np.int64)
        longest = int(lens.max())
        tokens = np.zeros((len(indices), longest), dtype=np.int64)
        features = np.zeros((len(indices), longest, self.features.shape[1]), dtype=np.float32)
        for row, (index, length) in enumerate(zip(indices, lens, strict=True)):
            span = slice(offsets[index], offsets[index] + length)
            tokens[row, :length] = self.corpus.tokens[span]
            features[row, :length] = self.features[span]
        start = torch.from_numpy(self.corpus.start[indices].astype(np.int64))
        return Batch(torch.from_numpy(tokens), torch.from_numpy(features), torch.from_numpy(lens), start)


def read_features(folder: Path, max_tokens: int | None = None) -> FeatureSet:
    """Read the feature pieces of a folder in order, up to the piece that reaches `max_tokens`.

    Raises SettingError if there is none.
    """
    pieces: list[dict[str, np.ndarray]] = []
    total = 0
    for path in sorted(folder.glob("*.npz")):
        pieces.append(read_npz(path, (*FIELDS, "features")))
        total += len(pieces[-1]["tokens"])
        if max_tokens is not None and total >= max_tokens:
            break
    if not pieces:
        raise SettingError(f"No features in {folder}; run `train features` first.")
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in (*FIELDS, "features")}
    return FeatureSet(Corpus(*(joined[name] for name in FIELDS)), joined["features"])
