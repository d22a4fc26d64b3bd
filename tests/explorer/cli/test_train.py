"""`train`: every mistake is named before anything is loaded; one stage runs through the parser."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from explorer.cli import train
from explorer.errors import CheckpointError, SettingError
from explorer.training.eagle import EagleOptions
from tests.support.goldens import FOLDER
from tests.support.training import tiny_corpus, write_corpus


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--epochs", "0"),
        ("--max-tokens", "-5"),
        ("--num-tokens", "0"),
        ("--draft-vocab", "0"),
        ("--threads", "0"),
        ("--learning-rate", "2"),
        ("--learning-rate", "nan"),
        ("--feature-layers", "1,,2"),
        ("--feature-layers", "-1"),
        ("--text", "/no/such/text.npz"),
    ],
)
def test_wrong_values_are_named(option: str, value: str, tmp_path: Path) -> None:
    args = parse("medusa", "--work", str(tmp_path), option, value)
    with pytest.raises(SettingError, match=option if option != "--text" else "no such text"):
        train.run(args)


def test_recipe_options() -> None:
    assert train.options_of(EagleOptions, ["token_weight=0.1", "num_frequent=7"]) == EagleOptions(
        token_weight=0.1, num_frequent=7
    )
    with pytest.raises(SettingError, match="--set magic: unknown; this recipe has feature_weight"):
        train.options_of(EagleOptions, ["magic=1"])
    with pytest.raises(SettingError, match=r"give a number like 0\.5"):
        train.options_of(EagleOptions, ["token_weight=much"])


def test_a_missing_target_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError):
        train.run(parse("features", "--work", str(tmp_path), "--target", str(tmp_path / "nothing")))


def test_draft_stage(tmp_path: Path) -> None:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(24))
    words = ("draft", "--work", str(tmp_path), "--target", str(FOLDER / "base_a"), "--epochs", "1")
    assert train.run(parse(*words, "--threads", "1")) == 0
    folder = tmp_path / "drafters" / "draft_model"
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["intermediate_size"], config["embedding_shared"]) == (2, 128, True)
    card = (folder / "README.md").read_text()
    assert "explorer train draft --work WORK --target base_a " in card, "a card repeats no path of this machine"


def test_features_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(8))
    words = ("features", "--work", str(tmp_path), "--target", str(FOLDER / "base_a"), "--threads", "1")
    assert train.run(parse(*words)) == 0
    assert (tmp_path / "features" / "training" / "00000.npz").exists()
    assert "features:" in capsys.readouterr().out


def test_eagle3_stages_share_their_features(tmp_path: Path) -> None:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(24))
    words = ("--work", str(tmp_path), "--target", str(FOLDER / "base_a"), "--epochs", "1", "--threads", "1")
    layers = ("--feature-layers", "0,2", "--draft-vocab", "50")
    assert train.run(parse("features", *words, *layers)) == 0
    found = {path: path.stat().st_mtime_ns for path in (tmp_path / "features").rglob("*.npz")}
    assert tmp_path / "features" / "layers-0-2" / "training" / "00000.npz" in found
    assert train.run(parse("eagle3", *words, *layers, "--set", "num_steps=2")) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "features").rglob("*.npz")} == found
    folder = tmp_path / "drafters" / "eagle3"
    config = json.loads((folder / "config.json").read_text())
    assert config["eagle_aux_hidden_state_layer_ids"] == [0, 2]
    assert "--feature-layers 0,2" in (folder / "README.md").read_text()


def test_medusa2_stage_begins_with_the_heads_of_medusa(tmp_path: Path) -> None:
    write_corpus(tmp_path / "text" / "a.npz", tiny_corpus(24))
    words = ("--work", str(tmp_path), "--target", str(FOLDER / "base_a"), "--epochs", "1", "--threads", "1")
    more = ("--draft-vocab", "50", "--set", "num_heads=2")
    with pytest.raises(SettingError, match="run `train medusa` first"):
        train.run(parse("medusa2", *words, *more))
    assert train.run(parse("medusa", *words, *more)) == 0
    assert train.run(parse("medusa2", *words, *more, "--set", "rank=1")) == 0
    folder = tmp_path / "drafters" / "medusa2"
    assert json.loads((folder / "config.json").read_text())["target_adapter"]["rank"] == 1
    assert "explorer train medusa2 --work WORK" in (folder / "README.md").read_text()
    assert "| learning_rate | 0.0004 |" in (folder / "README.md").read_text()
