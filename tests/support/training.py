"""Tiny training text and a tiny target for the recipes: everything in milliseconds, from seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from explorer.checkpoints.target import LoadedTarget
from explorer.training.corpus import Corpus
from explorer.training.dataset import FeatureSet, read_features
from explorer.training.features import Entered, compute_features
from explorer.training.storage import write_npz
from tests.support.tiny import VOCAB, tiny_model

STOP_ID = 2


def tiny_corpus(num_conversations: int = 60, seed: int = 0) -> Corpus:
    """Random conversations of 8 to 24 tokens whose tokens follow each other in a learnable way."""
    random = np.random.default_rng(seed)
    lens = random.integers(8, 25, num_conversations).astype(np.int32)
    parts = [(random.integers(3, VOCAB) + 7 * np.arange(length)) % (VOCAB - 3) + 3 for length in lens]
    tokens = np.concatenate(parts).astype(np.uint16)
    start = np.full(num_conversations, 4, dtype=np.int32)
    return Corpus(tokens, lens, start, np.zeros(num_conversations, dtype=np.float32))


def write_corpus(path: Path, corpus: Corpus) -> None:
    """The corpus as one text shard."""
    write_npz(path, dict(vars(corpus)))


def tiny_loaded_target() -> LoadedTarget:
    """A random target as the loader hands it over; there is no tokenizer."""
    return LoadedTarget(tiny_model(), None, "tiny", frozenset({STOP_ID}), "naive")


def tiny_parts(folder: Path, layers: tuple[int, ...] = ()) -> tuple[FeatureSet, FeatureSet]:
    """(training, held out): features of 57 and of 3 conversations."""
    corpus = tiny_corpus()
    index = np.arange(len(corpus))
    training, held_out = corpus.take(index[index % 20 > 0]), corpus.take(index[index % 20 == 0])
    return tiny_features(folder / "training", training, layers), tiny_features(folder / "held-out", held_out, layers)


def tiny_features(folder: Path, corpus: Corpus | None = None, layers: tuple[int, ...] = ()) -> FeatureSet:
    """Features of the tiny target over the tiny corpus, and what enters some of its layers."""
    model = tiny_model()
    model.set_attn_implementation("sdpa")
    corpus = corpus or tiny_corpus()
    entered = Entered(layers, folder / "layers") if layers else None
    compute_features(corpus, model.get_decoder(), folder, entered=entered)
    return read_features(folder, layers=entered.folder if entered else None)
