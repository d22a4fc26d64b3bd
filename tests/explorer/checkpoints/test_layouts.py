"""Every layout read back bit for bit, its config against the schema of the program that loads it.

The facts about other programs stand here with where they were read: repository, file, commit.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save_file
from torch import Tensor

from explorer.checkpoints.drafter_source import DrafterSource, EagleSource, MedusaSource, read_drafter
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.layouts import LAYOUTS, write_layout
from explorer.checkpoints.target_ends import read_target_ends
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.checkpoints.vllm_medusa import TOKEN_MAP
from explorer.checkpoints.written import Written
from explorer.errors import CheckpointError
from tests.support.checkpoints import copy_golden, edit_tensors, golden_dir
from tests.support.variants import with_one_kv_head, with_qkv_bias, with_repeated_block, with_two_layers

ENDS = read_target_ends(str(golden_dir("base_a")))
BIN = "pytorch_model.bin"


def golden(name: str) -> DrafterSource:
    return read_drafter(str(golden_dir(name)), ENDS)


def reduced(folder: Path) -> Path:
    """An EAGLE drafter with a draft vocabulary, as ours."""
    made = copy_golden("eagle_nobias", folder)

    def add(tensors: dict[str, Tensor]) -> None:
        tensors.pop("embed_tokens.weight")
        tensors["d2t"] = torch.arange(3, 320, 4)[:64] - torch.arange(64)

    edit_tensors(made, BIN, "model.safetensors", add)
    return made


def put(written: Written, folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, data in written.files.items():
        (folder / name).write_bytes(data)
    return folder


def tensors_of(drafter: DrafterSource) -> dict[str, Tensor]:
    return drafter.tensors if isinstance(drafter, MedusaSource) else drafter.weights


def config_of(written: Written) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(written.files["config.json"])
    return found


def same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    is_equal = (t.dtype == theirs[name].dtype and torch.equal(t, theirs[name]) for name, t in ours.items())
    return ours.keys() == theirs.keys() and all(is_equal)


@pytest.mark.parametrize("layout", ["medusa-a", "vllm"])
@pytest.mark.parametrize("name", ["medusa_a", "medusa_b", "medusa_c"])
def test_heads_come_back_bit_for_bit(tmp_path: Path, name: str, layout: str) -> None:
    drafter = golden(name)
    back = read_drafter(str(put(write_layout(layout, drafter), tmp_path / "out")), ENDS)
    assert isinstance(drafter, MedusaSource) and isinstance(back, MedusaSource)
    blocks, others = ({n: t for n, t in d.tensors.items() if d.is_block(n)} for d in (drafter, back))
    assert same(blocks, others)
    head = ENDS.lm_head.weight
    for number in range(drafter.num_heads):
        key = f"{number}.{drafter.num_blocks}.weight"
        assert torch.equal(back.tensors[key], drafter.tensors.get(key, head))


def test_layout_b_is_for_heads_without_matrices_or_with_the_targets(tmp_path: Path) -> None:
    drafter = golden("medusa_b")
    assert same(
        tensors_of(drafter), tensors_of(read_drafter(str(put(write_layout("medusa-b", drafter), tmp_path / "b")), ENDS))
    )
    whole = put(write_layout("medusa-a", drafter), tmp_path / "a")  # the target's head in each of them
    written = write_layout("medusa-b", read_drafter(str(whole), ENDS))
    assert "left out" in written.notes[0]
    assert same(tensors_of(drafter), load(written.files["medusa_lm_head.safetensors"]))
    assert config_of(written)["version"] == "2"
    with pytest.raises(CheckpointError, match="choose medusa-a or vllm"):
        write_layout("medusa-b", golden("medusa_a"))


def test_repeated_blocks_are_written_as_often_as_they_are_used(tmp_path: Path) -> None:
    drafter = read_drafter(str(with_repeated_block(tmp_path)), ENDS)
    for layout in ("medusa-a", "vllm"):
        back = read_drafter(str(put(write_layout(layout, drafter), tmp_path / layout)), ENDS)
        assert same(tensors_of(drafter), tensors_of(back))


def test_vllms_medusa_has_the_fields_that_vllm_reads() -> None:
    """vllm/transformers_utils/configs/medusa.py (0531c222) and vllm/model_executor/models/medusa.py (01dbb081)."""
    written = write_layout("vllm", golden("medusa_b"))
    config, stored = config_of(written), load(written.files["model.safetensors"])
    assert (config["model_type"], config["architectures"]) == ("medusa", ["MedusaModel"])
    assert (config["hidden_size"], config["vocab_size"], config["num_heads"]) == (64, 320, golden("medusa_b").num_heads)  # type: ignore[union-attr]
    # Its from_pretrained takes every key with "num" and "heads" for num_heads, and with "num" and "layers" for
    # num_hidden_layers: a second one would overwrite the first.
    assert [key for key in config if "num" in key and "heads" in key] == ["num_heads"]
    assert [key for key in config if "num" in key and "layers" in key] == ["num_hidden_layers"]
    assert config["medusa_fc_bias"] is True and "blocks.0.layers.0.bias" in stored
    assert config["original_lm_head"] is True and stored["lm_head.weight"].shape == (320, 64)
    assert "truncated_vocab_size" not in config
    own = write_layout("vllm", golden("medusa_a"))
    assert "original_lm_head" not in config_of(own)
    assert "lm_heads.0.weight" in load(own.files["model.safetensors"])


def test_a_reduced_vocabulary_of_heads_is_vllms_token_map(tmp_path: Path) -> None:
    """truncated_vocab_size must be there with token_map (vllm/model_executor/models/medusa.py, 01dbb081)."""
    whole = golden("medusa_a")
    assert isinstance(whole, MedusaSource)
    ids = torch.arange(0, 320, 5)
    cut = {name: t if whole.is_block(name) else t[ids] for name, t in whole.tensors.items()}
    drafter = MedusaSource(cut, ids, whole.num_heads, whole.num_blocks, True, "t", ENDS)
    written = write_layout("vllm", drafter)
    assert config_of(written)["truncated_vocab_size"] == len(ids)
    back = read_drafter(str(put(written, tmp_path / "out")), ENDS)
    assert isinstance(back, MedusaSource)
    assert back.token_map is not None and torch.equal(back.token_map, ids) and same(cut, back.tensors)
    with pytest.raises(CheckpointError, match="choose vllm"):
        write_layout("medusa-a", drafter)


def test_a_token_map_beside_heads_goes_where_it_is_read(tmp_path: Path) -> None:
    folder, ids = copy_golden("medusa_b", tmp_path), torch.arange(0, 320, 5)
    save_file({TOKEN_MAP: ids}, folder / TOKEN_MAP_FILE)
    drafter = read_drafter(str(folder), ENDS)
    for layout in ("medusa-b", "vllm"):
        back = read_drafter(str(put(write_layout(layout, drafter), tmp_path / layout)), ENDS)
        assert isinstance(back, MedusaSource) and back.token_map is not None
        assert torch.equal(back.token_map, ids)
    stored = load(write_layout("vllm", drafter).files["model.safetensors"])
    assert torch.equal(stored["lm_head.weight"], ENDS.lm_head.weight[ids])
    assert "left out" in write_layout("medusa-a", drafter).notes[0]


def variants(folder: Path) -> dict[str, Path]:
    return {
        "bias": golden_dir("eagle_bias"),
        "nobias": golden_dir("eagle_nobias"),
        "half": with_one_kv_head(folder / "half"),
        "two_layers": with_two_layers(folder / "two"),
        "qkv_bias": with_qkv_bias(folder / "qkv"),
        "reduced": reduced(folder / "reduced"),
    }


REFUSED = {
    ("bias", "vllm"): "fc has a bias",
    ("two_layers", "vllm"): "fc has a bias",
    ("qkv_bias", "vllm"): "fc has a bias",
    ("qkv_bias", "sglang"): "biases in q, k and v",
    ("two_layers", "speculators"): "has one layer",
    ("qkv_bias", "speculators"): "biases in q, k and v",
}


@pytest.mark.parametrize("layout", ["eagle", "vllm", "sglang", "speculators"])
@pytest.mark.parametrize("name", ["bias", "nobias", "half", "two_layers", "qkv_bias", "reduced"])
def test_eagle_drafters_come_back_bit_for_bit_or_are_refused(tmp_path: Path, name: str, layout: str) -> None:
    drafter = read_drafter(str(variants(tmp_path)[name]), ENDS)
    assert isinstance(drafter, EagleSource)
    if drafter.own_embedding() and layout in ("vllm", "sglang") and (name, layout) not in REFUSED:
        assert "own embedding" in write_layout(layout, drafter).notes[-1 if layout == "vllm" else 0]
    drafter = replace(drafter, embedding=None) if layout == "speculators" else drafter
    if (name, layout) in REFUSED:
        with pytest.raises(CheckpointError, match=REFUSED[name, layout]):
            write_layout(layout, drafter)
        return
    back = read_drafter(str(put(write_layout(layout, drafter), tmp_path / "out")), ENDS)
    assert isinstance(back, EagleSource)
    added = {} if "fc.bias" in drafter.weights or layout != "sglang" else {"fc.bias": back.weights["fc.bias"]}
    assert same(drafter.weights | added, back.weights)
    assert not any(tensor.any() for tensor in added.values())
    assert back.config == type(drafter.config)(
        **vars(drafter.config) | {"draft_vocab_size": None, "fc_bias": "fc.bias" in back.weights}
    )
    if layout != "speculators":
        theirs = drafter.embedding if back.embedding is not None else back.own_embedding().get("embed_tokens.weight")
        assert theirs is None or torch.equal(back.embedding_or_targets(), drafter.embedding_or_targets())


@pytest.mark.parametrize("layout", ["eagle", "vllm", "sglang", "speculators"])
def test_without_its_vocabulary_the_network_guesses_the_same_logits(tmp_path: Path, layout: str) -> None:
    """The published layout scores all tokens with the target's LM head, of which ours gathers rows."""
    source = reduced(tmp_path / "reduced")
    drafter = read_drafter(str(source), ENDS)
    assert isinstance(drafter, EagleSource)
    ours = load_eagle(str(source), ENDS).module
    theirs = load_eagle(str(put(write_layout(layout, drafter), tmp_path / "out")), ENDS).module
    hidden = ours.probe()
    assert torch.equal(hidden, theirs.probe())
    ids = drafter.draft_ids()
    assert ids is not None
    torch.testing.assert_close(ours.logits(hidden), theirs.logits(hidden)[..., ids])
    assert theirs.num_draft_tokens == 320


def test_vllms_eagle_has_only_what_vllm_knows(tmp_path: Path) -> None:
    """vllm/model_executor/models/llama_eagle.py: fc without bias, a tensor that is no parameter raises KeyError.

    vllm/model_executor/models/llama.py: ``bias`` in the config gives the attention biases, the output projection's too;
    ``qkv_bias`` gives them to q, k and v alone. configs/eagle.py: LlamaForCausalLM becomes EagleLlamaForCausalLM.
    """
    written = write_layout("vllm", read_drafter(str(reduced(tmp_path / "d")), ENDS))
    config, stored = config_of(written), load(written.files["model.safetensors"])
    assert (config["architectures"], config["model_type"]) == (["LlamaForCausalLM"], "llama")
    assert config.keys().isdisjoint({"bias", "draft_vocab_size", "qkv_bias"})
    assert all(name.startswith(("layers.0.", "fc.weight")) for name in stored), sorted(stored)
    assert "layers.0.input_layernorm.weight" not in stored
    zero = copy_golden("eagle_bias", tmp_path / "zero")
    edit_tensors(zero, BIN, "model.safetensors", lambda tensors: tensors["fc.bias"].zero_())
    drafter = read_drafter(str(zero), ENDS)
    assert "fc.bias" not in load(write_layout("vllm", drafter).files["model.safetensors"])
    biased = read_drafter(str(with_qkv_bias(tmp_path / "qkv", "eagle_nobias")), ENDS)
    assert config_of(write_layout("vllm", biased))["qkv_bias"] is True


def test_sglangs_eagle_has_its_class_and_its_token_map(tmp_path: Path) -> None:
    """python/sglang/srt/models/llama_eagle.py (034b3be): LlamaForCausalLMEagle, fc with a bias, untied LM head.

    python/sglang/srt/speculative/spec_utils.py: the token map is read with torch.load(weights_only=True) and given to
    torch.tensor, so it is a list of target ids.
    """
    drafter = read_drafter(str(reduced(tmp_path / "d")), ENDS)
    assert isinstance(drafter, EagleSource)
    written = write_layout("sglang", drafter)
    config = config_of(written)
    assert config["architectures"] == ["LlamaForCausalLMEagle"]
    assert config["tie_word_embeddings"] is False and "bias" not in config
    ids = torch.load(io.BytesIO(written.files["token_map.pt"]), weights_only=True)
    told = drafter.draft_ids()
    assert told is not None and ids == told.tolist()
    assert "token_map.pt" not in write_layout("sglang", golden("eagle_nobias")).files


def test_speculators_config_is_its_schema() -> None:
    """src/speculators/config.py (03a7c149) and src/speculators/models/eagle.py (0370128): what must be there."""
    drafter = golden("eagle_bias")
    assert isinstance(drafter, EagleSource)
    own = replace(drafter, embedding=ENDS.embed_tokens.weight + 1)
    with pytest.raises(CheckpointError, match="an embedding of its own"):
        write_layout("speculators", own)
    written = write_layout("speculators", replace(drafter, embedding=None))
    config = config_of(written)
    assert config["speculators_model_type"] == "eagle"
    assert config["transformer_layer_architecture"] in config["architectures"]
    inner = config["speculators_config"]
    assert inner.keys() == {"algorithm", "proposal_methods", "default_proposal_method", "verifier"}
    assert inner["default_proposal_method"] in [method["proposal_type"] for method in inner["proposal_methods"]]
    assert inner["verifier"]["architectures"] == ["LlamaForCausalLM"] and inner["verifier"]["name_or_path"]
    assert (config["fusion_bias"], config["layernorms"]) == (True, False)
    layer = config["transformer_layer_config"]
    assert (layer["model_type"], layer["hidden_size"], layer["num_hidden_layers"]) == ("llama", 64, 1)
    stored = load(written.files["model.safetensors"])
    assert {"fusion_fc.weight", "fusion_fc.bias", "transformer.mlp.up_proj.weight"} <= stored.keys()
    assert all(name.startswith(("fusion_fc.", "transformer.")) for name in stored)


def test_the_published_config_says_what_the_reference_defaults_wrongly() -> None:
    """eagle/model/cnets1.py of SafeAILab/EAGLE takes a missing ``bias`` for true; config.json says it either way."""
    for name, has_bias in (("eagle_bias", True), ("eagle_nobias", False)):
        config = config_of(write_layout("eagle", golden(name)))
        assert (config["bias"], config["qkv_bias"]) == (has_bias, False)


def test_each_layout_is_for_its_kinds() -> None:
    with pytest.raises(CheckpointError, match="not for Medusa heads; those go into medusa-a, medusa-b, vllm"):
        write_layout("sglang", golden("medusa_a"))
    with pytest.raises(CheckpointError, match="not for EAGLE drafters; those go into eagle, vllm, sglang, speculators"):
        write_layout("medusa-a", golden("eagle_bias"))
    assert all(layout.makers for layout in LAYOUTS.values())
