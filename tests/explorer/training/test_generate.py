"""Generation: the chat template is kept, greedy answers are the target's own, a killed run repeats one shard only."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.checkpoints.target import LoadedTarget, load_target
from explorer.errors import SettingError
from explorer.training.corpus import read_files, text_files
from explorer.training.generate import Conversation, GenerateOptions, generate
from tests.support.goldens import FOLDER
from tests.support.training import tiny_loaded_target

OPTIONS = GenerateOptions(num_tokens=400, shard_conversations=8, max_length=96, max_instruction=16)


@pytest.fixture(scope="module")
def target() -> LoadedTarget:
    return load_target(str(FOLDER / "base_a"))


@pytest.fixture(scope="module")
def text(target: LoadedTarget, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(target, tmp_path_factory.mktemp("work") / "text", OPTIONS)


def test_conversations_follow_the_template(target: LoadedTarget, text: Path) -> None:
    corpus = read_files(text_files([text]))
    assert int((corpus.lens - corpus.start).sum()) >= 400
    for index in range(len(corpus)):
        tokens = corpus.conversation(index).tolist()
        prompt, answer = tokens[: corpus.start[index]], tokens[corpus.start[index] :]
        rendered = target.tokenizer.decode(prompt)
        assert "<|im_start|>user" in rendered
        assert rendered.rstrip().endswith("assistant")
        assert len(tokens) <= 96
        assert answer[-1] in target.stop_ids or len(tokens) == 96
        assert not target.stop_ids & set(answer[:-1])


def test_greedy_answers_are_the_targets_own(target: LoadedTarget, text: Path) -> None:
    corpus = read_files(text_files([text]))
    greedy = np.flatnonzero(corpus.temp == 0)
    assert 0 < len(greedy) < len(corpus)
    target.model.set_attn_implementation("sdpa")
    for index in greedy[:4]:
        ids = torch.from_numpy(corpus.conversation(index).astype(np.int64))
        with torch.inference_mode():
            best = target.model(input_ids=ids[None]).logits[0].argmax(-1)
        start = corpus.start[index]
        assert torch.equal(best[start - 1 : -1], ids[start:])


def test_a_killed_run_repeats_only_the_missing_shard(target: LoadedTarget, text: Path) -> None:
    shards = sorted(text.glob("*.npz"))
    assert len(shards) >= 2
    kept = shards[0].stat().st_mtime_ns
    before = read_files([shards[1]])
    shards[1].unlink()
    generate(target, text, OPTIONS)
    assert shards[0].stat().st_mtime_ns == kept
    after = read_files([shards[1]])
    assert np.array_equal(after.tokens, before.tokens)
    assert np.array_equal(after.start, before.start)


def test_another_seed_writes_other_text(target: LoadedTarget, text: Path, tmp_path: Path) -> None:
    generate(target, tmp_path, replace(OPTIONS, seed=1, num_tokens=20))
    other, own = (read_files(text_files([folder])).tokens[:200].tolist() for folder in (tmp_path, text))
    assert other != own


@pytest.mark.parametrize(("largest", "dtype"), [(65_535, np.uint16), (65_536, np.uint32), (151_645, np.uint32)])
def test_large_vocabularies_are_written_whole(
    target: LoadedTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int, dtype: type
) -> None:
    """Qwen2's end of turn is token 151,645."""
    made = Conversation([1, largest], deque(), 0.0, start=1)
    monkeypatch.setattr("explorer.training.generate._write_shard", lambda *_: [made])
    generate(target, tmp_path, replace(OPTIONS, num_tokens=1))
    corpus = read_files(text_files([tmp_path]))
    assert corpus.tokens.dtype == dtype and corpus.tokens.tolist() == [1, largest]


def test_a_target_without_a_template_is_refused(tmp_path: Path) -> None:
    class Bare:
        chat_template = None

    bare = replace(tiny_loaded_target(), tokenizer=Bare())
    with pytest.raises(SettingError, match="no chat template"):
        generate(bare, tmp_path, OPTIONS)
