"""Gathering: no conversation twice, a part set aside for good, and the same text in the same order for a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from explorer.errors import SettingError
from explorer.training import gather as module
from explorer.training.corpus import Corpus, concatenate
from explorer.training.gather import distinct, gather, read_gathered
from tests.support.training import tiny_corpus, write_corpus


def conversations(corpus: Corpus) -> list[bytes]:
    return [corpus.conversation(index).tobytes() for index in range(len(corpus))]


def test_every_conversation_goes_to_one_side_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD_TOKENS", 200)
    text = tiny_corpus(40)
    write_corpus(tmp_path / "text" / "a.npz", text)
    write_corpus(tmp_path / "text" / "b.npz", text)
    folder = gather([tmp_path / "text"], tmp_path / "corpus", seed=1)
    training, held_out = read_gathered(folder)
    assert len(sorted(folder.glob("training-*.npz"))) > 1
    different = conversations(distinct(text))
    assert len(held_out) == -(-len(different) // 20)
    assert sorted(conversations(training) + conversations(held_out)) == sorted(different)
    assert conversations(training) != sorted(conversations(training), key=different.index)  # shuffled


def test_repeated_questions_and_repeated_answers_are_dropped() -> None:
    def make(*tokens: int) -> Corpus:
        lens, start = np.array([len(tokens)], np.int32), np.array([2], np.int32)
        return Corpus(np.array(tokens, np.uint16), lens, start, np.zeros(1, np.float32))

    first, same_question, same_answer, other = make(1, 2, 7, 8), make(1, 2, 9), make(3, 4, 7, 8), make(3, 5, 9)
    kept = distinct(concatenate([first, same_question, same_answer, other]))
    assert conversations(kept) == [first.tokens.tobytes()]  # the last one's answer was seen, though it was dropped
    assert len(distinct(concatenate([first, make(3, 5, 6)]))) == 2


def test_what_came_held_out_stays_held_out(tmp_path: Path) -> None:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(40))
    training, held_out = read_gathered(gather([tmp_path / "text"], tmp_path / "first", seed=1))
    again = gather([tmp_path / "first", tmp_path / "text"], tmp_path / "second", seed=2)
    training_again, held_out_again = read_gathered(again)
    assert conversations(held_out_again) == conversations(held_out)
    assert conversations(training_again) == conversations(training)  # and in its order


def test_gathering_again_keeps_what_is_there_and_refuses_other_text(tmp_path: Path) -> None:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(40))
    folder = gather([tmp_path / "text"], tmp_path / "corpus", seed=1)
    stamp = (folder / "held-out.npz").stat().st_mtime_ns
    gather([tmp_path / "text"], tmp_path / "corpus", seed=1)
    assert (folder / "held-out.npz").stat().st_mtime_ns == stamp
    with pytest.raises(SettingError, match="another --work folder"):
        gather([tmp_path / "text"], tmp_path / "corpus", seed=2)
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(40, seed=3))
    with pytest.raises(SettingError, match="another --work folder"):
        gather([tmp_path / "text"], tmp_path / "corpus", seed=1)
