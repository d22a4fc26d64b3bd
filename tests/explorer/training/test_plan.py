"""What every recipe begins with: features computed once, for this text and target alone, and weights to start from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from safetensors.torch import save_file

from explorer.checkpoints.int8 import quantize
from explorer.errors import SettingError
from explorer.models.medusa_heads import MedusaHeads
from explorer.training.loop import LoopOptions
from explorer.training.plan import Plan, load_weights, prepare
from tests.support.training import tiny_corpus, tiny_loaded_target, write_corpus


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus())
    loop = LoopOptions(epochs=2, batch_tokens=256, warmup_steps=2)
    return Plan(tmp_path, tmp_path / "drafters", command="train x", draft_vocab_size=40, loop=loop)


def test_features_of_layers_leave_the_others_as_they_are(plan: Plan, tmp_path: Path) -> None:
    plain = prepare(plan, tiny_loaded_target())
    assert plain.training.layers is None
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "features").rglob("*.npz")}
    with_layers = prepare(plan, tiny_loaded_target(), (0, 1))
    assert with_layers.training.layers is not None
    assert with_layers.training.layers.shape == (len(plain.training.corpus.tokens), 64)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert (with_layers.training.features == plain.training.features).all()


def test_features_of_other_text_are_refused(plan: Plan, tmp_path: Path) -> None:
    prepare(plan, tiny_loaded_target())
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(seed=9))
    with pytest.raises(SettingError, match="another --work folder"):
        prepare(plan, tiny_loaded_target())
    shutil.rmtree(tmp_path / "corpus")
    with pytest.raises(SettingError, match="features of other text"):
        prepare(plan, tiny_loaded_target())


def test_weights_to_start_from_must_be_of_the_same_shape(tmp_path: Path) -> None:
    stored = MedusaHeads(2, 1, 8, 16)
    save_file({name: tensor + 1 for name, tensor in stored.state_dict().items()}, tmp_path / "x.safetensors")
    network = MedusaHeads(2, 1, 8, 16)
    load_weights(network, tmp_path)
    assert float(network.state_dict()["0.0.linear.weight"].min()) == 1
    with pytest.raises(SettingError, match="to start from"):
        load_weights(MedusaHeads(3, 1, 8, 16), tmp_path)


def test_weights_to_start_from_may_be_stored_as_integers(tmp_path: Path) -> None:
    stored = MedusaHeads(2, 1, 8, 16).state_dict()
    stored["0.0.linear.weight"][0, 0] = 127 / 128
    save_file(quantize(stored), tmp_path / "x.safetensors")
    network = MedusaHeads(2, 1, 8, 16)
    load_weights(network, tmp_path)
    found = network.state_dict()["0.0.linear.weight"]
    assert found.dtype == stored["0.0.linear.weight"].dtype
    assert float(found[0, 0]) == 127 / 128
