"""The shipped text is what its card says: readable, in two parts that share nothing, long enough to train on."""

from __future__ import annotations

import numpy as np

from explorer.config import repo_path
from explorer.training.corpus import Corpus, concatenate
from explorer.training.gather import distinct, read_gathered

FOLDER = repo_path("assets", "text", "smollm2-135m-instruct")
MIN_ANSWER_TOKENS = 1_500_000


def num_answer_tokens(corpus: Corpus) -> int:
    return int((corpus.lens - corpus.start).sum())


def test_the_card_tells_its_size() -> None:
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    training, held_out = read_gathered(FOLDER)
    for name, part in (("training", training), ("held out", held_out)):
        assert f"| {name} | {len(part):,} | {len(part.tokens):,} | {num_answer_tokens(part):,} |" in card
    assert num_answer_tokens(training) + num_answer_tokens(held_out) >= MIN_ANSWER_TOKENS


def test_no_conversation_is_there_twice_and_none_is_too_long() -> None:
    training, held_out = read_gathered(FOLDER)
    both = concatenate([held_out, training])
    assert len(distinct(both)) == len(both)
    assert both.lens.max() <= 512 and (both.start < both.lens).all() and both.start.min() > 0
    assert both.tokens.dtype == np.uint16 and both.lens.sum() == len(both.tokens)
