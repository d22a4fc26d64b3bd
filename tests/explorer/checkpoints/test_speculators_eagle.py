"""speculators' names there and back, and what its layout has that EAGLE has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.files import Report
from explorer.checkpoints.speculators_eagle import from_speculators, is_speculators, to_speculators
from explorer.errors import CheckpointError
from tests.support.checkpoints import Facts, copy_golden, edit_json, edit_tensors

CONFIG: dict[str, Any] = {
    "speculators_model_type": "eagle",
    "transformer_layer_config": {"hidden_size": 64, "num_hidden_layers": 30},
    "fusion_bias": True,
}


def test_names_there_and_back() -> None:
    ours = ["fc.weight", "fc.bias", "layers.0.self_attn.q_proj.weight", "layers.0.post_attention_layernorm.weight"]
    theirs = [to_speculators(name) for name in ours]
    assert theirs[0] == "fusion_fc.weight" and theirs[2] == "transformer.self_attn.q_proj.weight"
    _, back = from_speculators(CONFIG, {name: torch.ones(1) for name in theirs}, Report("it"))
    assert list(back) == ours
    assert to_speculators("norm.weight") == "norm.weight"


def test_the_layers_config_becomes_the_drafters() -> None:
    config, _ = from_speculators(CONFIG, {}, Report("it"))
    assert config == {"hidden_size": 64, "num_hidden_layers": 1, "bias": True}


def test_other_configs_are_left_alone() -> None:
    for config in ({}, {"speculators_model_type": "eagle3"}, {"model_type": "llama"}):
        assert not is_speculators(config)
        tensors = {"transformer.x": torch.ones(1)}
        assert from_speculators(config, tensors, Report("it")) == (config, tensors)


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({"transformer_layer_config": 3}, "fusion_fc.weight", "must be an object"),
        ({"layernorms": True}, "fusion_fc.weight", "extra norms"),
        ({}, "pre_lm_head_layernorm.weight", "extra norms"),
    ],
)
def test_what_eagle_cannot_be_is_refused(changes: dict[str, Any], name: str, says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        from_speculators(CONFIG | changes, {name: torch.ones(1)}, Report("it"))


def test_a_missing_tensor_is_told_under_its_published_name(tmp_path: Path) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    layer = {"hidden_size": 64, "intermediate_size": 160, "num_attention_heads": 4, "vocab_size": 320}
    edit_json(folder / "config.json", **CONFIG | {"transformer_layer_config": layer})

    def rename(tensors: dict[str, torch.Tensor]) -> None:
        found = {to_speculators(key): tensors.pop(key) for key in list(tensors)}
        found.pop("fusion_fc.weight")
        tensors |= found

    edit_tensors(folder, "pytorch_model.bin", "model.safetensors", rename)
    with pytest.raises(CheckpointError, match=r"missing: fc\.weight"):
        load_eagle(str(folder), Facts())
