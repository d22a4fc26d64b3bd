"""Training text: shards, order, frequencies, and what unreadable text says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.errors import SettingError
from explorer.training.corpus import Corpus, frequent_tokens, read_files, text_files
from tests.support.training import tiny_corpus, write_corpus


def test_reads_files_and_folders_in_order(tmp_path: Path) -> None:
    first, second = tiny_corpus(5, seed=1), tiny_corpus(7, seed=2)
    write_corpus(tmp_path / "folder" / "b.npz", second)
    write_corpus(tmp_path / "a.npz", first)
    joined = read_files(text_files([tmp_path / "a.npz", tmp_path / "folder"]))
    assert len(joined) == 12
    assert np.array_equal(joined.conversation(5), second.conversation(0))
    assert joined.tokens.dtype == np.uint16


def test_shuffling_is_seeded_and_loses_nothing() -> None:
    corpus = tiny_corpus(20)
    once, again, other = corpus.shuffled(3), corpus.shuffled(3), corpus.shuffled(4)
    assert np.array_equal(once.tokens, again.tokens)
    assert not np.array_equal(once.tokens, other.tokens)
    assert sorted(once.tokens.tolist()) == sorted(corpus.tokens.tolist())


def test_pieces_hold_whole_conversations_in_order() -> None:
    corpus = tiny_corpus(30)
    pieces = list(corpus.shards(100))
    assert len(pieces) > 3
    assert np.array_equal(np.concatenate([piece.tokens for piece in pieces]), corpus.tokens)
    assert all(piece.lens.sum() == len(piece.tokens) for piece in pieces)


def test_frequent_tokens_count_answers_only() -> None:
    tokens = np.array([9, 9, 9, 5, 5, 4, 9, 9, 4, 6], dtype=np.uint16)
    corpus = Corpus(tokens, np.array([6, 4]), np.array([3, 2]), np.zeros(2, np.float32))
    # Answers: 5 5 4 and 4 6; of equal counts the smaller id comes first.
    assert frequent_tokens(corpus, 3, 12).tolist() == [4, 5, 6]


def test_missing_or_broken_text_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="train generate"):
        text_files([tmp_path])
    with pytest.raises(SettingError, match="train generate"):
        text_files([tmp_path / "nothing"])
    (tmp_path / "broken.npz").write_bytes(b"PK not a zip")
    with pytest.raises(SettingError, match=r"broken\.npz"):
        read_files(text_files([tmp_path]))
