"""The recipes end to end on a tiny target: drafter folders that load, trees, cards, and refusal of foreign features."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from explorer.checkpoints.draft_model import load_draft_model
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import load_eagle3
from explorer.checkpoints.medusa import load_medusa
from explorer.errors import SettingError
from explorer.prediction import read_profile
from explorer.training.draft_model import DraftModelOptions
from explorer.training.eagle import EagleOptions
from explorer.training.eagle3 import Eagle3Options
from explorer.training.gather import HELD_OUT_EVERY, distinct
from explorer.training.loop import LoopOptions
from explorer.training.medusa import MedusaOptions
from explorer.training.plan import Plan
from explorer.training.run import (
    profile_drafters,
    train_draft_model,
    train_eagle,
    train_eagle3,
    train_medusa,
)
from tests.support.tiny import tiny_target
from tests.support.training import tiny_corpus, tiny_loaded_target, write_corpus


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus())
    loop = LoopOptions(epochs=2, batch_tokens=256, warmup_steps=2)
    return Plan(tmp_path, tmp_path / "drafters", command="train x", draft_vocab_size=40, loop=loop)


def test_medusa_end_to_end(plan: Plan, tmp_path: Path) -> None:
    options = MedusaOptions(num_heads=2, num_frequent=20, num_sampled=20)
    folder = train_medusa(plan, tiny_loaded_target(), options, tmp_path / "trees.json")
    assert load_medusa(str(folder), tiny_target()).module.num_heads == 2
    accuracy = json.loads((folder / "head_accuracy.json").read_text())
    assert [len(row) for row in accuracy] == [10, 10]
    trees = json.loads((tmp_path / "trees.json").read_text())
    assert 15 < len(trees["smollm2-63"]) <= 63  # guesses that were never right are left out
    assert max(len(path) for path in trees["smollm2-63"]) <= 2
    assert "head 0 right, first guess" in (folder / "README.md").read_text()


def test_eagle_end_to_end(plan: Plan) -> None:
    folder = train_eagle(plan, tiny_loaded_target(), EagleOptions(num_frequent=10, num_sampled=10))
    assert load_eagle(str(folder), tiny_target()).module.num_draft_tokens == 40
    every = replace(plan, out=plan.out / "all", draft_vocab_size=10**6)
    shutil.rmtree(plan.work / "eagle")
    folder = train_eagle(every, tiny_loaded_target(), EagleOptions(num_frequent=10, num_sampled=10))
    assert "d2t" not in load_file(folder / "model.safetensors"), "all tokens are no draft vocabulary"
    assert load_eagle(str(folder), tiny_target()).module.config.draft_vocab_size is None
    card = (folder / "README.md").read_text()
    assert "first guess right at depth 1" in card
    num_distinct = len(distinct(tiny_corpus()))
    num_held_out = -(-num_distinct // HELD_OUT_EVERY)
    assert f"Training: {num_distinct - num_held_out} conversations" in card
    assert f"Held out: {num_held_out} conversations" in card


def test_eagle3_end_to_end(plan: Plan, tmp_path: Path) -> None:
    """Two of the tiny target's layers are named; a run that is cut goes on where it stopped."""
    plan = replace(plan, feature_layers=(0, 1))
    folder = train_eagle3(plan, tiny_loaded_target(), Eagle3Options(num_steps=2))
    loaded = load_eagle3(str(folder), tiny_target())
    assert loaded.feature_layers == (0, 1)
    assert loaded.module.num_draft_tokens == 40
    card = (folder / "README.md").read_text()
    for piece in (
        "first guess right at depth 5",
        "| inputs of layers | 0, 1 |",
        "| num_steps | 2 |",
        "| decay | 0.8 |",
    ):
        assert piece in card
    stamp = (tmp_path / "eagle3" / "best.pt").stat().st_mtime_ns
    train_eagle3(plan, tiny_loaded_target(), Eagle3Options(num_steps=2))
    assert (tmp_path / "eagle3" / "best.pt").stat().st_mtime_ns == stamp, "a finished run is not trained again"
    with pytest.raises(SettingError, match="other settings"):
        train_eagle3(plan, tiny_loaded_target(), Eagle3Options(num_steps=3))
    shutil.rmtree(tmp_path / "eagle3")
    frozen = replace(plan.loop, epochs=1, learning_rate=1e-9)
    again = replace(plan, start_from=folder, out=tmp_path / "again", loop=frozen)
    second = train_eagle3(again, tiny_loaded_target(), Eagle3Options(num_steps=2))
    before, after = (load_file(path / "model.safetensors") for path in (folder, second))
    assert all(torch.allclose(before[name], after[name], atol=1e-3) for name in before)


def test_eagle3_over_the_whole_vocabulary(plan: Plan) -> None:
    plan = replace(plan, feature_layers=(1,), draft_vocab_size=8192, loop=replace(plan.loop, epochs=1))
    folder = train_eagle3(plan, tiny_loaded_target(), Eagle3Options(num_steps=1))
    assert load_eagle3(str(folder), tiny_target()).module.config.draft_vocab_size is None
    assert not {"d2t", "t2d"} & load_file(folder / "model.safetensors").keys()


def test_eagle3_needs_layers_that_the_target_has(plan: Plan) -> None:
    with pytest.raises(SettingError, match="name some with --feature-layers"):
        train_eagle3(plan, tiny_loaded_target(), Eagle3Options())
    for wrong in ((0, 2), (1, 1)):
        with pytest.raises(SettingError, match="different layers from 0 to 1"):
            train_eagle3(replace(plan, feature_layers=wrong), tiny_loaded_target(), Eagle3Options())


def test_profiles_are_written_beside_each_drafter(plan: Plan) -> None:
    plan = replace(plan, feature_layers=(0, 1), loop=replace(plan.loop, epochs=1))
    train_eagle3(plan, tiny_loaded_target(), Eagle3Options(num_steps=1))
    profile_drafters(plan, tiny_target())
    profile = read_profile(plan.out / "eagle3")
    assert profile is not None
    assert profile.method == "eagle3"
    assert len(profile.shapes) == 36


def test_draft_model_end_to_end(plan: Plan, tmp_path: Path) -> None:
    options = DraftModelOptions(num_layers=1, intermediate_size=24, num_frequent=20, num_sampled=20)
    folder = train_draft_model(plan, tiny_loaded_target(), options)
    target = tiny_target()
    loaded = load_draft_model(str(folder), target)
    assert loaded.shares_embedding
    assert loaded.model.get_input_embeddings() is target.embed_tokens
    assert (folder / "model.safetensors").stat().st_size < 2 * loaded.record.num_parameters + 4096
    card = (folder / "README.md").read_text()
    assert "first choice is the target's" in card
    assert "| num_layers | 1 |" in card
    shutil.rmtree(tmp_path / "draft_model")
    frozen = replace(plan.loop, epochs=1, learning_rate=1e-9)
    again = train_draft_model(
        replace(plan, start_from=folder, out=tmp_path / "again", loop=frozen), tiny_loaded_target(), options
    )
    before, after = (load_file(path / "model.safetensors") for path in (folder, again))
    assert all(torch.allclose(before[name], after[name], atol=1e-3) for name in before)


def test_a_run_can_start_from_a_finished_drafter(plan: Plan, tmp_path: Path) -> None:
    options = EagleOptions(num_frequent=10, num_sampled=10)
    first = train_eagle(plan, tiny_loaded_target(), options)
    frozen = replace(plan.loop, epochs=1, learning_rate=1e-9)
    shutil.rmtree(tmp_path / "eagle")
    again = replace(plan, start_from=first, out=tmp_path / "again", loop=frozen)
    second = train_eagle(again, tiny_loaded_target(), options)
    before, after = (load_file(folder / "model.safetensors") for folder in (first, second))
    assert all(torch.allclose(before[name], after[name], atol=1e-3) for name in before)
    shutil.rmtree(tmp_path / "eagle")
    with pytest.raises(SettingError, match="to start from"):
        train_eagle(replace(again, draft_vocab_size=30), tiny_loaded_target(), options)
