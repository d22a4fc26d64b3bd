"""Adapters of a target: read strictly, merged into a target of their own, sized as the formula says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

from explorer.adapter_words import AdapterRecord
from explorer.checkpoints.int8 import quantize
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.target import load_target
from explorer.checkpoints.target_adapter import (
    ADAPTER,
    adapt,
    find_adapter,
    has_adapter,
    num_numbers,
    read_adapter,
    read_record,
    target_norm,
)
from explorer.errors import CheckpointError
from explorer.models.low_rank import adapted, matrix_sizes
from explorer.models.medusa_heads import MedusaHeads
from explorer.training.medusa2 import Medusa2Options
from tests.support.checkpoints import Facts, golden_dir
from tests.support.medusa2_files import RANK, adapter_tensors, base_b_norm, write_medusa2

BASE = str(golden_dir("base_b"))
IDS = torch.tensor([[5, 9, 17, 5, 9]])


def test_the_adapted_target_is_the_original_with_the_changes_beside_it(tmp_path: Path) -> None:
    source = str(write_medusa2(tmp_path))
    original, loaded = load_target(BASE), adapt(load_target(BASE), source)
    adapter = read_adapter(source, original.model.get_decoder())
    with torch.inference_mode():
        before = original.model(input_ids=IDS).logits
        with adapted(original.model.get_decoder(), adapter):
            beside = original.model(input_ids=IDS).logits
        inside = loaded.model(input_ids=IDS).logits
    assert float((inside - beside).abs().max()) <= 1e-5 * float(beside.abs().max())
    assert float((inside - before).abs().max()) > 0.01
    assert loaded.name == "base_b adapted by medusa2"
    num_parameters = sum(tensor.numel() for tensor in adapter_tensors().values())
    assert (
        loaded.adapter == AdapterRecord("medusa2", "base_b", num_parameters, 0.25, 0.875, 1234) == read_record(source)
    )
    assert original.adapter is None


def test_heads_are_read_as_heads_whether_an_adapter_is_there_or_not(tmp_path: Path) -> None:
    folder = write_medusa2(tmp_path)
    assert load_medusa(str(folder), Facts()).module.num_heads == 3
    assert find_adapter(str(folder)) == folder and has_adapter(str(folder))
    plain = str(golden_dir("medusa_b"))
    assert find_adapter(plain) is None and not has_adapter(plain)
    with pytest.raises(CheckpointError, match="does not exist"):
        find_adapter("/no/such/place")


def test_everything_wrong_is_listed_at_once(tmp_path: Path) -> None:
    tensors = adapter_tensors()
    tensors["9.mlp.up_proj.down"] = tensors.pop("0.mlp.up_proj.down")
    tensors["1.mlp.up_proj.up"] = tensors["1.mlp.up_proj.up"][:-1].contiguous()
    tensors["2.mlp.up_proj.up"][0, 0] = float("nan")
    source = str(write_medusa2(tmp_path, tensors=tensors, target_norm=2 * base_b_norm()))
    with pytest.raises(CheckpointError) as caught:
        adapt(load_target(BASE), source)
    for piece in (
        "the target adapter of 'medusa2' does not fit",
        "missing: 0.mlp.up_proj.down",
        "unexpected: 9.mlp.up_proj.down",
        "1.mlp.up_proj.up has shape [127, 2], expected [128, 2]",
        "not finite",
        "made for another target",
    ):
        assert piece in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rank", 0),
        ("rank", 2.0),
        ("rank", True),
        ("rank", 10**30),
        ("scale", "2"),
        ("scale", float("nan")),
        ("target_norm", None),
        ("mean_kl", -0.1),
        ("agreement", []),
        ("num_tokens", 0),
    ],
)
def test_wrong_numbers_are_named(tmp_path: Path, name: str, value: object) -> None:
    source = str(write_medusa2(tmp_path, **{name: value}))
    with pytest.raises(CheckpointError, match=f"{ADAPTER}.{name}"):
        adapt(load_target(BASE), source)


def test_a_config_without_the_adapter_is_refused(tmp_path: Path) -> None:
    folder = write_medusa2(tmp_path)
    (folder / "config.json").write_text(json.dumps({"base_model_name_or_path": 3}))
    with pytest.raises(CheckpointError, match=r"target_adapter.rank .*target_norm .*must name the target"):
        read_record(str(folder))
    (folder / "target_adapter.safetensors").write_bytes(b"no tensors")
    with pytest.raises(CheckpointError):
        read_record(str(folder))


def test_an_adapter_knows_its_target(tmp_path: Path) -> None:
    """Also a target of the same shape is another; the same one in bfloat16 is not."""
    source = str(write_medusa2(tmp_path))
    with pytest.raises(CheckpointError, match="made for another target"):
        adapt(load_target(str(golden_dir("base_a"))), source)
    assert adapt(load_target(BASE, dtype="bfloat16"), source).adapter is not None
    exact = target_norm(load_target(BASE).model.get_decoder())
    assert exact == pytest.approx(base_b_norm(), rel=1e-9)


def test_the_default_target_gives_less_than_nine_megabytes() -> None:
    options = Medusa2Options()
    shape = {"hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536}
    with torch.device("meta"):
        body = LlamaModel(LlamaConfig(num_hidden_layers=30, vocab_size=8, **shape))
        heads = MedusaHeads(options.num_heads, options.num_layers, 576, 49_152)
    adapter = num_numbers(matrix_sizes(body), options.rank)
    assert adapter == 30 * 4 * (2 * (576 + 576) + 2 * (576 + 192) + 3 * (576 + 1536)) == 1_221_120
    head = sum(parameter.numel() for parameter in heads.parameters())
    token_map, names = 8 * 8192, 200 * 2 * 7 * 30  # int64 ids; the file's own list of tensors is shorter than that
    assert 7.5e6 < 2 * (adapter + head) + token_map + names < 9e6


def test_the_file_has_the_size_of_the_formula(tmp_path: Path) -> None:
    folder = write_medusa2(tmp_path)
    count = num_numbers(matrix_sizes(load_target(BASE).model.get_decoder()), RANK)
    assert 2 * count < (folder / "target_adapter.safetensors").stat().st_size < 2 * count + 200 * 2 * 7 * 4


def test_an_adapter_of_integers_is_read_as_the_numbers_they_stand_for(tmp_path: Path) -> None:
    folder, tensors = write_medusa2(tmp_path, tensors=quantize(adapter_tensors())), adapter_tensors()
    decoder = load_target(BASE).model.get_decoder()
    found = read_adapter(str(folder), decoder).state_dict()
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        most = tensor.float().abs().amax(1, keepdim=True) / 127  # one step: half of it, and the rounding
        assert ((found[name] - tensor).abs() <= most).all()
        assert not torch.equal(found[name], tensor.float())
