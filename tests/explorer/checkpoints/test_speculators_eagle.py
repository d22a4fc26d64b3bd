"""speculators' names there and back, and what its layout has that EAGLE has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.files import Report
from explorer.checkpoints.speculators_eagle import EAGLE3_TYPE, from_speculators, header, to_speculators, type_of
from explorer.errors import CheckpointError
from tests.support.checkpoints import Facts, copy_golden, edit_json, edit_tensors

CONFIG: dict[str, Any] = {
    "speculators_model_type": "eagle",
    "transformer_layer_config": {"hidden_size": 64, "num_hidden_layers": 30},
    "fusion_bias": True,
}

EAGLE3: dict[str, Any] = {
    "speculators_model_type": "eagle3",
    "transformer_layer_config": {"hidden_size": 64, "num_hidden_layers": 1},
    "draft_vocab_size": 9,
    "norm_before_residual": True,
    "vocab_size": 7,  # beside the layer, transformers writes fields that mean nothing
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
    for config in ({}, {"speculators_model_type": "dflash"}, {"model_type": "llama"}):
        assert type_of(config) == config.get("speculators_model_type")
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


def test_eagle3s_names_there_and_back() -> None:
    ours = ["fc.weight", "midlayer.self_attn.q_proj.weight", "midlayer.hidden_norm.weight", "norm.weight", "d2t"]
    theirs = [to_speculators(name, EAGLE3_TYPE) for name in ours]
    assert theirs[1:3] == ["layers.0.self_attn.q_proj.weight", "layers.0.hidden_norm.weight"]
    assert (theirs[0], theirs[3:]) == ("fc.weight", ["norm.weight", "d2t"])
    config, back = from_speculators(EAGLE3, {name: torch.ones(1) for name in theirs}, Report("it"))
    assert list(back) == ours
    assert config == {"hidden_size": 64, "num_hidden_layers": 1, "draft_vocab_size": 9, "norm_before_residual": True}


@pytest.mark.parametrize(
    ("changes", "names", "says"),
    [
        ({"transformer_layer_config": None}, [], "must be an object"),
        ({"transformer_layer_config": {"layer_types": ["sliding_attention"]}}, [], "sliding window"),
        ({}, ["layers.0.mlp.up_proj.weight", "midlayer.mlp.up_proj.weight"], "there under two names"),
    ],
)
def test_what_eagle3_cannot_be_is_refused(changes: dict[str, Any], names: list[str], says: str) -> None:
    with pytest.raises(CheckpointError, match=says):
        from_speculators(EAGLE3 | changes, {name: torch.ones(1) for name in names}, Report("it"))


def test_a_residual_that_is_not_told_is_asked_for() -> None:
    """speculators' default is false, that of vLLM true (configs/speculators/algos.py, cfb173ab)."""
    untold = {name: value for name, value in EAGLE3.items() if name != "norm_before_residual"}
    with pytest.raises(CheckpointError, match="speculators takes false and vLLM true"):
        from_speculators(untold, {}, Report("it"))


def test_the_header_names_kind_chain_and_target() -> None:
    made = header(EAGLE3_TYPE, 3, "some/target", ("LlamaForCausalLM",))
    assert type_of(made) == made["speculators_config"]["algorithm"] == "eagle3"
    assert made["speculators_config"]["proposal_methods"] == [{"proposal_type": "greedy", "speculative_tokens": 3}]
    assert made["speculators_config"]["verifier"] == {
        "name_or_path": "some/target",
        "architectures": ["LlamaForCausalLM"],
    }


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
