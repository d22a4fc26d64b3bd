"""Features equal the target's own hidden states, whatever they were batched with, and missing pieces are made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.errors import SettingError
from explorer.training import features
from explorer.training.dataset import read_features
from tests.support.tiny import tiny_model
from tests.support.training import tiny_corpus, tiny_features


def test_features_are_the_targets_hidden_states(tmp_path: Path) -> None:
    corpus = tiny_corpus(9)
    data = tiny_features(tmp_path, corpus)
    model = tiny_model()
    model.set_attn_implementation("sdpa")
    offsets = corpus.offsets
    for index in range(len(corpus)):
        ids = torch.from_numpy(corpus.conversation(index).astype(np.int64))[None]
        with torch.inference_mode():
            alone = model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
        found = torch.from_numpy(data.features[offsets[index] : offsets[index + 1]].astype(np.float32))
        assert torch.allclose(found, alone, atol=5e-3)


def test_features_of_layers_are_what_enters_them(tmp_path: Path) -> None:
    corpus = tiny_corpus(9)
    data = tiny_features(tmp_path, corpus, layers=(1, 0))
    assert data.layers is not None
    model = tiny_model()
    model.set_attn_implementation("sdpa")
    for index, span in enumerate(map(slice, corpus.offsets[:-1], corpus.offsets[1:])):
        ids = torch.from_numpy(corpus.conversation(index).astype(np.int64))[None]
        with torch.inference_mode():
            states = model(input_ids=ids, output_hidden_states=True).hidden_states
        found = torch.from_numpy(data.layers[span].astype(np.float32))
        assert torch.allclose(found, torch.cat([states[1][0], states[0][0]], dim=-1), atol=5e-3)


def test_states_that_float16_cannot_hold_are_named(tmp_path: Path) -> None:
    model = tiny_model()
    model.set_attn_implementation("sdpa")
    model.get_input_embeddings().weight.data[tiny_corpus().tokens[5]] = 1e5
    features.compute_features(tiny_corpus(), model.get_decoder(), tmp_path / "final")
    entered = features.Entered((0,), tmp_path / "entered")
    with pytest.raises(SettingError, match="too large for float16"):
        features.compute_features(tiny_corpus(), model.get_decoder(), tmp_path / "final", entered=entered)
    assert list((tmp_path / "entered").glob("*.npz")) == []


def test_one_pass_makes_up_whichever_of_both_is_missing(tmp_path: Path) -> None:
    whole = tiny_features(tmp_path, layers=(1, 0))
    assert whole.layers is not None
    body = tiny_model().get_decoder()
    body.set_attn_implementation("sdpa")
    entered = features.Entered((1, 0), tmp_path / "layers")
    for kept, lost in ((tmp_path, entered.folder), (entered.folder, tmp_path)):
        stamp = (kept / "00000.npz").stat().st_mtime_ns
        (lost / "00000.npz").unlink()
        features.compute_features(tiny_corpus(), body, tmp_path, entered=entered)
        assert (kept / "00000.npz").stat().st_mtime_ns == stamp
        again = read_features(tmp_path, layers=entered.folder)
        assert again.layers is not None
        assert np.array_equal(again.features, whole.features)
        assert np.array_equal(again.layers, whole.layers)


def test_existing_pieces_are_kept_and_missing_ones_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "SHARD_TOKENS", 200)
    whole = tiny_features(tmp_path / "whole")
    body = tiny_model().get_decoder()
    body.set_attn_implementation("sdpa")
    first = features.compute_features(tiny_corpus(), body, tmp_path / "cut", max_tokens=300)
    assert len(first) == 2
    stamps = [path.stat().st_mtime_ns for path in first]
    features.compute_features(tiny_corpus(), body, tmp_path / "cut")
    assert [path.stat().st_mtime_ns for path in first] == stamps
    resumed = read_features(tmp_path / "cut")
    assert np.array_equal(resumed.features, whole.features)
    assert np.array_equal(resumed.corpus.tokens, whole.corpus.tokens)


def test_batches_respect_the_budget_and_hold_every_row_once() -> None:
    lens = np.array([5, 30, 7, 7, 100, 6])
    batches = features.batches_by_length(lens, 40)
    assert sorted(np.concatenate(batches).tolist()) == list(range(6))
    assert all(len(batch) == 1 or len(batch) * lens[batch].max() <= 40 for batch in batches)
