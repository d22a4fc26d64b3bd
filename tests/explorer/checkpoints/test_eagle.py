"""EAGLE-1/2 drafters: the config's odd defaults, the reduced vocabulary, and one strict report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from explorer.checkpoints.eagle import load_eagle
from explorer.errors import CheckpointError
from explorer.models.eagle_layer import EagleDrafter
from tests.support.checkpoints import Facts, copy_golden, edit_json, edit_tensors, golden_dir

BIN, SAFE = "pytorch_model.bin", "model.safetensors"


def drafter_of(source: Path, facts: Facts | None = None) -> EagleDrafter:
    module = load_eagle(str(source), facts or Facts()).module
    assert isinstance(module, EagleDrafter)
    return module


def test_a_config_that_says_little() -> None:
    config = drafter_of(golden_dir("eagle_bias")).config
    assert (config.fc_bias, config.num_key_value_heads, config.rope_theta) == (True, 4, 10000.0)
    assert (config.intermediate_size, config.num_layers, config.draft_vocab_size) == (160, 1, None)


def test_a_config_of_its_own() -> None:
    config = drafter_of(golden_dir("eagle_nobias")).config
    assert (config.fc_bias, config.num_key_value_heads, config.rope_theta) == (False, 2, 500000.0)


def test_rope_theta_where_newer_versions_write_it(tmp_path: Path) -> None:
    folder = copy_golden("eagle_nobias", tmp_path)
    edit_json(folder / "config.json", rope_theta=None, rope_parameters={"rope_type": "default", "rope_theta": 77.0})
    assert drafter_of(folder).config.rope_theta == 77.0


def test_size_leaves_the_embedding_out() -> None:
    record = load_eagle(str(golden_dir("eagle_bias")), Facts()).record
    tensors = torch.load(golden_dir("eagle_bias") / BIN, weights_only=True)
    assert record.num_parameters == sum(t.numel() for name, t in tensors.items() if name != "embed_tokens.weight")


def test_a_copy_of_the_targets_embedding_is_dropped() -> None:
    facts = Facts()
    facts.embed_tokens.weight = torch.nn.Parameter(
        torch.load(golden_dir("eagle_bias") / BIN, weights_only=True)["embed_tokens.weight"]
    )
    assert drafter_of(golden_dir("eagle_bias"), facts).embedding.data_ptr() == facts.embed_tokens.weight.data_ptr()


def test_an_embedding_of_its_own_is_kept() -> None:
    own = torch.load(golden_dir("eagle_bias") / BIN, weights_only=True)["embed_tokens.weight"]
    assert torch.equal(drafter_of(golden_dir("eagle_bias")).embedding, own)


def test_without_an_embedding_the_targets_is_used(tmp_path: Path) -> None:
    folder, facts = copy_golden("eagle_bias", tmp_path), Facts()
    edit_tensors(folder, BIN, SAFE, lambda tensors: tensors.pop("embed_tokens.weight"))
    assert drafter_of(folder, facts).embedding.data_ptr() == facts.embed_tokens.weight.data_ptr()


def test_derived_tensors_of_other_versions_are_ignored(tmp_path: Path) -> None:
    def add(tensors: dict[str, Tensor]) -> None:
        tensors["layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
        tensors["t2d"] = torch.ones(320, dtype=torch.bool)

    folder = copy_golden("eagle_bias", tmp_path)
    edit_tensors(folder, BIN, SAFE, add)
    drafter_of(folder)


def test_biases_of_q_k_and_v_follow_the_tensors(tmp_path: Path) -> None:
    def add(tensors: dict[str, Tensor]) -> None:
        tensors |= {f"layers.0.self_attn.{part}_proj.bias": torch.ones(64) for part in "qkv"}

    folder = copy_golden("eagle_bias", tmp_path)
    edit_tensors(folder, BIN, SAFE, add)
    assert drafter_of(folder).config.qkv_bias
    edit_json(folder / "config.json", qkv_bias=False)
    assert "unexpected: layers.0.self_attn.k_proj.bias" in refused(folder)


def with_map(folder: Path, offsets: Tensor) -> None:
    edit_tensors(folder, BIN, SAFE, lambda tensors: tensors.update(d2t=offsets))


def test_a_reduced_vocabulary_maps_to_the_targets(tmp_path: Path) -> None:
    folder, facts = copy_golden("eagle_bias", tmp_path), Facts()
    ids = torch.arange(0, 320, 3)
    with_map(folder, ids - torch.arange(len(ids)))
    drafter = drafter_of(folder, facts)
    assert drafter.config.draft_vocab_size == len(ids)
    assert torch.equal(drafter.to_target(torch.arange(len(ids))), ids)
    hidden = torch.randn(2, 64)
    assert torch.allclose(drafter.logits(hidden), facts.lm_head(hidden)[:, ids], atol=1e-5)


@pytest.mark.parametrize(
    ("offsets", "says"),
    [
        (torch.tensor([0, 0, 400]), "different target ids below 320"),
        (torch.tensor([-1, 0]), "different target ids below 320"),
        (torch.tensor([1, 0]), "different target ids below 320"),
        (torch.ones(3), "must be a list of int64"),
        (torch.zeros(2, 2, dtype=torch.int64), "must be a list of int64"),
        (torch.zeros(0, dtype=torch.int64), "must be a list of int64"),
    ],
)
def test_a_map_that_leads_astray_is_refused(tmp_path: Path, offsets: Tensor, says: str) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    with_map(folder, offsets)
    assert says in refused(folder)


def test_a_reduced_vocabulary_needs_its_map(tmp_path: Path) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    edit_json(folder / "config.json", draft_vocab_size=100)
    assert "missing: d2t" in refused(folder)


def refused(folder: Path, facts: Facts | None = None) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_eagle(str(folder), facts or Facts())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_target_is_one_error_that_names_both_sizes() -> None:
    assert refused(golden_dir("eagle_bias"), Facts(hidden_size=96, vocab_size=400)) == (
        "EAGLE drafter 'eagle_bias' does not fit the target 'facts': hidden size 64, but the target has 96; "
        "vocabulary 320, but the target has 400"
    )


def test_the_report_lists_missing_leftover_misshapen_and_mistyped(tmp_path: Path) -> None:
    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors["fc.bias"]
        tensors["norm.weight"] = torch.ones(64)
        tensors["layers.0.mlp.up_proj.weight"] = torch.ones(160, 63)
        tensors["embed_tokens.weight"] = torch.ones(319, 64)
        tensors["layers.0.post_attention_layernorm.weight"] = torch.ones(64, dtype=torch.int32)

    folder = copy_golden("eagle_bias", tmp_path)
    edit_json(folder / "config.json", bias=True)
    edit_tensors(folder, BIN, SAFE, damage)
    message = refused(folder, Facts(vocab_size=321))
    for part in (
        "missing: fc.bias",
        "unexpected: norm.weight",
        "layers.0.mlp.up_proj.weight has shape [160, 63], expected [160, 64]",
        "embed_tokens.weight has shape [319, 64], expected [320, 64]",
        "post_attention_layernorm.weight is int32",
        "vocabulary 320, but the target has 321",
    ):
        assert part in message


@pytest.mark.parametrize("name", ["midlayer.mlp.up_proj.weight", "layers.0.hidden_norm.weight"])
def test_an_eagle3_drafter_is_refused_in_words(tmp_path: Path, name: str) -> None:
    """Its parts stand in no EAGLE-1 file; a config with fields of its own changes nothing."""
    folder = copy_golden("eagle_bias", tmp_path)
    edit_json(folder / "config.json", draft_vocab_size=100, architectures=["LlamaForCausalLMEagle3"])
    edit_tensors(folder, BIN, SAFE, lambda tensors: tensors.update({name: torch.ones(1)}))
    message = refused(folder)
    assert f"it is an EAGLE-3 drafter (it has {name})" in message
    assert "choose the method eagle3, or the target's EAGLE drafter" in message
    assert "missing" not in message


@pytest.mark.parametrize("said", [None, 1, 32])
def test_layers_are_counted_in_the_tensors(tmp_path: Path, said: int | None) -> None:
    """The config is often the target's own, layers and all."""

    def add(tensors: dict[str, Tensor]) -> None:
        second = {
            name.replace("layers.0.", "layers.1."): t.clone() for name, t in tensors.items() if "layers.0." in name
        }
        tensors |= second | {"layers.1.input_layernorm.weight": torch.ones(64)}

    folder = copy_golden("eagle_bias", tmp_path)
    edit_json(folder / "config.json", num_hidden_layers=said)
    assert drafter_of(folder).config.num_layers == 1
    edit_tensors(folder, BIN, SAFE, add)
    assert drafter_of(folder).config.num_layers == 2
    edit_tensors(folder, SAFE, SAFE, lambda tensors: tensors.pop("layers.1.input_layernorm.weight"))  # type: ignore[arg-type, return-value]
    assert "missing: layers.1.input_layernorm.weight" in refused(folder)


def test_layers_with_a_gap_are_listed_as_missing(tmp_path: Path) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    edit_tensors(
        folder, BIN, SAFE, lambda tensors: tensors.update({"layers.2.mlp.up_proj.weight": torch.ones(160, 64)})
    )
    message = refused(folder)
    assert "layers.1.mlp.up_proj.weight" in message
    assert "layers.2.mlp.down_proj.weight" in message
    edit_tensors(folder, SAFE, SAFE, lambda tensors: tensors.update({"layers.9999.x": torch.ones(1)}))
    assert "layers up to 9999" in refused(folder)


@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_kv_heads_where_the_config_does_not_say(tmp_path: Path, num_kv_heads: int) -> None:
    def shrink(tensors: dict[str, Tensor]) -> None:
        for part in "kv":
            name = f"layers.0.self_attn.{part}_proj.weight"
            tensors[name] = tensors[name][: 16 * num_kv_heads]

    folder = copy_golden("eagle_bias", tmp_path)
    edit_tensors(folder, BIN, SAFE, shrink)
    assert drafter_of(folder).config.num_key_value_heads == num_kv_heads
    edit_json(folder / "config.json", num_key_value_heads=4)
    assert f"k_proj.weight has shape [{16 * num_kv_heads}, 64], expected [64, 64]" in refused(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("file", [SAFE, BIN])
def test_files_of_half_precision(tmp_path: Path, dtype: torch.dtype, file: str) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    exact = drafter_of(folder).state_dict()
    tensors = {name: tensor.to(dtype) for name, tensor in torch.load(folder / BIN, weights_only=True).items()}
    (folder / BIN).unlink()
    save_file(tensors, folder / file) if file == SAFE else torch.save(tensors, folder / file)
    for name, tensor in drafter_of(folder).state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, exact[name].to(dtype).float())


@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_a_drafter_in_shards(tmp_path: Path, kind: str) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    exact = drafter_of(folder).state_dict()
    tensors = torch.load(folder / BIN, weights_only=True)
    (folder / BIN).unlink()
    single = {"safetensors": SAFE, "bin": BIN}[kind]
    weight_map = {name: f"{number % 2}.{kind}" for number, name in enumerate(tensors)}
    for shard in set(weight_map.values()):
        part = {name: tensor for name, tensor in tensors.items() if weight_map[name] == shard}
        save_file(part, folder / shard) if kind == "safetensors" else torch.save(part, folder / shard)
    (folder / f"{single}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    state = drafter_of(folder).state_dict()
    assert all(torch.equal(state[name], exact[name]) for name in exact)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": None},
        {"hidden_size": "64"},
        {"hidden_size": True},
        {"num_attention_heads": 0},
        {"num_attention_heads": 5},
        {"num_key_value_heads": 3},
        {"num_hidden_layers": 10**9},
        {"intermediate_size": 10**12},
        {"hidden_size": 10**6, "num_attention_heads": 10},
        {"rope_theta": -1},
        {"rope_theta": "wide"},
        {"rms_norm_eps": []},
        {"hidden_act": "no_such_function"},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        {"draft_vocab_size": 10**12},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_an_unusable_config_is_refused_before_anything_is_made(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    edit_json(folder / "config.json", **changes)
    refused(folder)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "config.json").write_text("{"),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / BIN).write_bytes((folder / BIN).read_bytes()[:9000]),
        lambda folder: (folder / BIN).unlink(),
    ],
    ids=["broken config", "no config", "cut weights", "no weights"],
)
def test_broken_files(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    damage(folder)
    refused(folder)
