"""Training text: many short conversations in a few flat arrays, kept as resumable `.npz` shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from explorer.errors import SettingError
from explorer.training.storage import read_npz

FIELDS = ("tokens", "lens", "start", "temp")


@dataclass(frozen=True)
class Corpus:
    """Conversations laid end to end.

    tokens: uint16 [T] (uint32 where an id is larger), special tokens included. lens: int32 [S], tokens of each. start:
    int32 [S], index of the first answer token within its own conversation. temp: float32 [S], temperature the answer
    was sampled at, 0 = greedy.
    """

    tokens: np.ndarray
    lens: np.ndarray
    start: np.ndarray
    temp: np.ndarray

    def __len__(self) -> int:
        return len(self.lens)

    @property
    def offsets(self) -> np.ndarray:
        """int64 [S + 1]: where each conversation begins in `tokens`."""
        return np.concatenate([[0], np.cumsum(self.lens, dtype=np.int64)])

    def conversation(self, index: int) -> np.ndarray:
        """The tokens of one conversation."""
        offsets = self.offsets
        return self.tokens[offsets[index] : offsets[index + 1]]

    def take(self, order: np.ndarray) -> Corpus:
        """The conversations `order` names, in that order."""
        offsets = self.offsets
        parts = [self.tokens[offsets[i] : offsets[i + 1]] for i in order]
        tokens = np.concatenate(parts) if parts else self.tokens[:0]
        return Corpus(tokens, self.lens[order], self.start[order], self.temp[order])

    def shuffled(self, seed: int) -> Corpus:
        """The same conversations in a seeded random order, so that any prefix is a fair sample."""
        return self.take(np.random.default_rng(seed).permutation(len(self)))

    def shards(self, num_tokens: int) -> Iterator[Corpus]:
        """Consecutive pieces of about `num_tokens` tokens, whole conversations each."""
        piece = self.offsets[:-1] // num_tokens
        for number in np.unique(piece):
            yield self.take(np.flatnonzero(piece == number))


def text_files(paths: list[Path]) -> list[Path]:
    """The `.npz` files that are named or lie in the named folders (in name order); SettingError if there is none."""
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.glob("*.npz")))]
    if not files:
        where = ", ".join(str(path) for path in paths) or "the work folder"
        raise SettingError(f"No training text in {where}; run `train generate` first or name a file with --text.")
    return files


def read_files(files: list[Path]) -> Corpus:
    """All conversations of these files; SettingError if one of them lacks an array."""
    return concatenate([Corpus(**read_npz(file, FIELDS)) for file in files])


def concatenate(parts: list[Corpus]) -> Corpus:
    """The conversations of all parts, one after another."""
    return Corpus(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS})


def frequent_tokens(corpus: Corpus, count: int, vocab_size: int) -> np.ndarray:
    """The `count` most frequent token ids of the answers, best first, int64 [count]; ties go to the smaller id."""
    positions = np.arange(len(corpus.tokens)) - np.repeat(corpus.offsets[:-1], corpus.lens)
    answers = corpus.tokens[positions >= np.repeat(corpus.start, corpus.lens)]
    counts = np.bincount(answers, minlength=vocab_size)
    return np.argsort(-counts, kind="stable")[:count].astype(np.int64)
