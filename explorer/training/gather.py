"""Text made ready for training: repeats dropped, the order shuffled, a part set aside that no drafter trains on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from explorer.errors import SettingError
from explorer.training.corpus import Corpus, concatenate, read_files, text_files
from explorer.training.storage import write_json, write_npz

HELD_OUT = "held-out.npz"
HELD_OUT_EVERY = 20
SHARD_TOKENS = 1_000_000


def gather(paths: list[Path], folder: Path, seed: int) -> Path:
    """Write `training-00.npz`, ... and `held-out.npz` from text files and folders; what is there already is kept.

    Every 20th conversation of the seeded order is held out, unless the text comes with a `held-out.npz` of its own:
    such text was gathered before, and keeps its order.
    Raises SettingError if the folder was gathered from other text or in another order.
    """
    files = text_files(paths)
    manifest = {"text_sha256": _digest(files), "seed": seed}
    known = folder / "manifest.json"
    if known.exists():
        if json.loads(known.read_text(encoding="utf-8")) != manifest:
            raise SettingError(f"{folder} was gathered from other text or in another order; name another --work folder")
        return folder
    training, held_out = _split(files, seed)
    for number, shard in enumerate(training.shards(SHARD_TOKENS)):
        write_npz(folder / f"training-{number:02d}.npz", dict(vars(shard)), is_compressed=True)
    write_npz(folder / HELD_OUT, dict(vars(held_out)), is_compressed=True)
    write_json(known, manifest)  # last: it says that the others are whole
    return folder


def read_gathered(folder: Path) -> tuple[Corpus, Corpus]:
    """(training, held out), as gathered."""
    return read_files(sorted(folder.glob("training-*.npz"))), read_files([folder / HELD_OUT])


def _split(files: list[Path], seed: int) -> tuple[Corpus, Corpus]:
    set_aside = [file for file in files if file.name == HELD_OUT]
    held_out = distinct(read_files(set_aside)) if set_aside else None
    rest = read_files([file for file in files if file.name != HELD_OUT])
    if held_out is not None:
        both = distinct(concatenate([held_out, rest]))  # what is held out comes first, so it is never the one dropped
        return both.take(np.arange(len(held_out), len(both))), held_out
    corpus = distinct(rest).shuffled(seed)
    index = np.arange(len(corpus))
    is_held_out = index % HELD_OUT_EVERY == 0
    return corpus.take(index[~is_held_out]), corpus.take(index[is_held_out])


def distinct(corpus: Corpus) -> Corpus:
    """The conversations whose question and whose answer both appear for the first time."""
    questions, answers = set[bytes](), set[bytes]()
    chosen = []
    for index in range(len(corpus)):
        tokens, start = corpus.conversation(index), corpus.start[index]
        question, answer = tokens[:start].tobytes(), tokens[start:].tobytes()
        if question not in questions and answer not in answers:
            chosen.append(index)
        questions.add(question)
        answers.add(answer)
    return corpus.take(np.array(chosen, dtype=np.int64))


def _digest(files: list[Path]) -> str:
    """Of the text itself, not of the files: the same conversations packed otherwise are the same text."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(read_files([file]).tokens.tobytes())
    return digest.hexdigest()
