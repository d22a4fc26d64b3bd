"""Conversations with their features, cut into padded batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    """Padded on the right. tokens int64 [B, T]; features float32 [B, T, H]; lens and start int64 [B].

    layers: float32 [B, T, F] what entered some decoder layers, where the set has it.
    """

    tokens: Tensor
    features: Tensor
    lens: Tensor
    start: Tensor
    layers: Tensor = field(default_factory=lambda: torch.empty(0))

    def answer_mask(self, ahead: int) -> Tensor:
        """bool [B, T]: position t has seen the prompt's end (t >= start - 1) and token t + ahead exists."""
        positions = torch.arange(self.tokens.shape[1])[None]
        return (positions >= self.start[:, None] - 1) & (positions + ahead < self.lens[:, None])


@dataclass(frozen=True)
class FeatureSet:
    """A corpus and the target's hidden states over it, float16 [T, H], in memory.

    layers: float16 [T, F] what entered the decoder layers that a drafter reads, side by side.
    """

    corpus: Corpus
    features: np.ndarray
    layers: np.ndarray | None = None

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
        spans = [slice(offsets[index], offsets[index] + length) for index, length in zip(indices, lens, strict=True)]

        def padded(values: np.ndarray, dtype: type) -> Tensor:
            found = np.zeros((len(spans), longest, *values.shape[1:]), dtype=dtype)
            for row, span in enumerate(spans):
                found[row, : span.stop - span.start] = values[span]
            return torch.from_numpy(found)

        return Batch(
            tokens=padded(self.corpus.tokens, np.int64),
            features=padded(self.features, np.float32),
            lens=torch.from_numpy(lens),
            start=torch.from_numpy(self.corpus.start[indices].astype(np.int64)),
            layers=torch.empty(0) if self.layers is None else padded(self.layers, np.float32),
        )


def read_features(folder: Path, max_tokens: int | None = None, layers: Path | None = None) -> FeatureSet:
    """Read the feature pieces of a folder in order, up to the piece that reaches `max_tokens`.

    layers: the folder with what entered some decoder layers over the same text. Raises SettingError if a folder has no
    pieces, or the two do not agree.
    """
    found = _read_pieces(folder, max_tokens)
    if layers is None:
        return found
    entered = _read_pieces(layers, max_tokens)
    if not np.array_equal(entered.corpus.tokens, found.corpus.tokens):
        raise SettingError(f"{layers} and {folder} hold features of different text; name another --work folder.")
    return replace(found, layers=entered.features)


def _read_pieces(folder: Path, max_tokens: int | None) -> FeatureSet:
    pieces: list[dict[str, np.ndarray]] = []
    paths = sorted(folder.glob("*.npz"))
    total = 0
    for path in paths:
        pieces.append(read_npz(path, FIELDS))
        total += len(pieces[-1]["tokens"])
        if max_tokens is not None and total >= max_tokens:
            break
    if not pieces:
        raise SettingError(f"No features in {folder}; run `train features` first.")
    joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in FIELDS}
    return FeatureSet(Corpus(*(joined[name] for name in FIELDS)), _read_arrays(paths[: len(pieces)], total))


def _read_arrays(paths: list[Path], num_tokens: int) -> np.ndarray:
    """The features of all files in one array, made before they are read: two copies of them may not fit in memory."""
    found, first = np.empty((0, 0), dtype=np.float16), 0
    for path in paths:
        part = read_npz(path, ("features",))["features"]
        if not first:
            found = np.empty((num_tokens, part.shape[1]), dtype=part.dtype)
        found[first : first + len(part)] = part
        first += len(part)
    return found
