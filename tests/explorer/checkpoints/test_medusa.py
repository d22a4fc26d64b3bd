"""Medusa heads: every published layout by its tensors, and one strict report for what does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_model
from torch import Tensor

from explorer.checkpoints.medusa import load_medusa
from explorer.errors import CheckpointError
from explorer.models.medusa_heads import MedusaHeads
from tests.support.checkpoints import Facts, copy_golden, edit_tensors, golden_dir, vllm_copy

LAYOUT_B = "medusa_lm_head.safetensors"


def heads_of(source: Path, facts: Facts | None = None) -> MedusaHeads:
    module = load_medusa(str(source), facts or Facts()).module
    assert isinstance(module, MedusaHeads)
    return module


@pytest.mark.parametrize(
    ("name", "num_heads", "own_lm", "num_parameters"),
    [("medusa_a", 5, True, 123200), ("medusa_b", 3, False, 12480), ("medusa_c", 5, True, 123200)],
)
def test_each_layout_loads(name: str, num_heads: int, own_lm: bool, num_parameters: int) -> None:
    loaded = load_medusa(str(golden_dir(name)), Facts())
    module = loaded.module
    assert isinstance(module, MedusaHeads)
    assert (module.num_heads, module.num_layers, module.own_lm) == (num_heads, 1, own_lm)
    assert module(torch.zeros(2, 64), Facts().lm_head).shape == (num_heads, 2, 320)
    assert (loaded.record.name, loaded.record.num_parameters) == (name, num_parameters)
    assert loaded.record.num_bytes == 4 * num_parameters


def test_the_weights_are_the_files() -> None:
    file = load_file(golden_dir("medusa_b") / LAYOUT_B)
    state = heads_of(golden_dir("medusa_b")).state_dict()
    assert state.keys() == file.keys()
    assert all(torch.equal(state[name], file[name]) for name in file)


def test_a_full_model_gives_its_heads_only() -> None:
    file = load_file(golden_dir("medusa_c") / "model-00002-of-00002.safetensors")
    state = heads_of(golden_dir("medusa_c")).state_dict()
    assert torch.equal(state["4.1.weight"], file["medusa_head.4.1.weight"])
    assert state.keys() == {name.removeprefix("medusa_head.") for name in file if name.startswith("medusa_head.")}


def test_heads_take_the_targets_dtype() -> None:
    assert heads_of(golden_dir("medusa_b"), Facts(dtype=torch.bfloat16))[0][0].linear.weight.dtype == torch.bfloat16


def repeat(tensors: dict[str, Tensor]) -> None:
    """The original repeats one block object, so its files hold equal tensors under several names."""
    matrices = {name.replace(".1.", ".2."): tensors.pop(name) for name in list(tensors) if name.endswith(".1.weight")}
    tensors |= {name.replace(".0.", ".1.", 1): tensor.clone() for name, tensor in tensors.items()} | matrices


def twice(heads: MedusaHeads, hidden: Tensor) -> Tensor:
    """What heads of one block give when that block is applied twice."""
    return torch.stack([head[1](head[0](head[0](hidden))) for head in heads])  # type: ignore[index]


def test_two_residual_blocks_are_inferred_and_equal_ones_are_held_once(tmp_path: Path) -> None:
    folder = copy_golden("medusa_b", tmp_path)
    edit_tensors(folder, LAYOUT_B, LAYOUT_B, repeat)
    loaded = load_medusa(str(folder), Facts())
    heads = loaded.module
    assert isinstance(heads, MedusaHeads)
    assert (heads.num_heads, heads.num_layers, heads.own_lm) == (3, 2, False)
    assert loaded.record.num_parameters == 12480, "a block that is repeated counts once"


def test_different_blocks_stay_different(tmp_path: Path) -> None:
    def vary(tensors: dict[str, Tensor]) -> None:
        repeat(tensors)
        tensors["2.1.linear.bias"] += 1

    folder = copy_golden("medusa_b", tmp_path)
    edit_tensors(folder, LAYOUT_B, LAYOUT_B, vary)
    heads = heads_of(folder)
    assert heads[0][0] is heads[0][1]  # type: ignore[index]
    assert heads[2][0] is not heads[2][1]  # type: ignore[index]


@pytest.mark.parametrize("is_stored_once", [False, True])
def test_a_repeated_block_before_an_own_matrix(tmp_path: Path, is_stored_once: bool) -> None:
    """Files that store equal tensors once have block 0 alone, and the matrix's number tells how often it repeats."""

    def store(tensors: dict[str, Tensor]) -> None:
        repeat(tensors)
        if is_stored_once:
            for name in [name for name in tensors if ".1." in name]:
                del tensors[name]

    folder, hidden = copy_golden("medusa_a", tmp_path), torch.randn(4, 64)
    edit_tensors(folder, "medusa_lm_head.pt", LAYOUT_B, store)
    heads = heads_of(folder)
    assert (heads.num_heads, heads.num_layers, heads.own_lm) == (5, 2, True)
    expected = twice(heads_of(golden_dir("medusa_a")), hidden)
    torch.testing.assert_close(heads(hidden, Facts().lm_head), expected)


def test_safetensors_own_way_of_storing_a_repeated_block(tmp_path: Path) -> None:
    heads = MedusaHeads(3, 2, 64, 320)
    torch.nn.init.normal_(heads[0][0].linear.weight)  # type: ignore[index]
    for head in heads:
        head[1] = head[0]  # type: ignore[index]
    save_model(heads, str(tmp_path / LAYOUT_B))
    assert len(load_file(tmp_path / LAYOUT_B)) == 6
    loaded = heads_of(tmp_path)
    assert loaded.num_layers == 2
    assert torch.equal(loaded[0][1].linear.weight, heads[0][0].linear.weight)  # type: ignore[index]


def test_one_missing_block_is_no_repetition(tmp_path: Path) -> None:
    def drop(tensors: dict[str, Tensor]) -> None:
        repeat(tensors)
        del tensors["1.1.linear.weight"], tensors["1.1.linear.bias"]

    folder = copy_golden("medusa_a", tmp_path)
    edit_tensors(folder, "medusa_lm_head.pt", LAYOUT_B, drop)
    assert "missing: 1.1.linear.bias, 1.1.linear.weight" in refused(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_files_of_half_precision(tmp_path: Path, dtype: torch.dtype) -> None:
    folder, hidden = copy_golden("medusa_a", tmp_path), torch.randn(4, 64)
    edit_tensors(folder, "medusa_lm_head.pt", LAYOUT_B, lambda t: t.update({k: v.to(dtype) for k, v in t.items()}))
    heads = heads_of(folder)
    assert {parameter.dtype for parameter in heads.parameters()} == {torch.float32}
    exact = heads_of(golden_dir("medusa_a"))(hidden, Facts().lm_head)
    torch.testing.assert_close(heads(hidden, Facts().lm_head), exact, atol=0.3, rtol=0.05)


def test_a_full_model_in_pickled_shards(tmp_path: Path) -> None:
    folder = copy_golden("medusa_c", tmp_path)
    expected = heads_of(folder).state_dict()
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    for number, name in enumerate(sorted(set(index["weight_map"].values()))):
        # the second one in the format before zip files, which cannot be mapped
        torch.save(load_file(folder / name), folder / f"{number}.bin", _use_new_zipfile_serialization=number == 0)
        (folder / name).unlink()
        index["weight_map"] = {k: f"{number}.bin" if v == name else v for k, v in index["weight_map"].items()}
    (folder / "model.safetensors.index.json").unlink()
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    state = heads_of(folder).state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in state)


@pytest.mark.parametrize("prefix", ["", "medusa_heads."])
def test_vllms_layout_is_layout_a_under_other_names(tmp_path: Path, prefix: str) -> None:
    ours, original = heads_of(vllm_copy(tmp_path, prefix=prefix)), heads_of(golden_dir("medusa_a"))
    assert (ours.num_heads, ours.num_layers, ours.own_lm) == (5, 1, True)
    assert ours.state_dict().keys() == original.state_dict().keys()
    assert all(torch.equal(tensor, original.state_dict()[name]) for name, tensor in ours.state_dict().items())


def test_vllms_layout_without_biases(tmp_path: Path) -> None:
    def drop(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if name.endswith("bias")]:
            del tensors[name]

    folder, hidden = vllm_copy(tmp_path), torch.randn(3, 64)
    edit_tensors(folder, "model.safetensors", "model.safetensors", drop)
    linear, matrix = (
        load_file(folder / "model.safetensors")[name] for name in ("blocks.2.layers.0.weight", "lm_heads.2.weight")
    )
    expected = (hidden + torch.nn.functional.silu(hidden @ linear.T)) @ matrix.T
    torch.testing.assert_close(heads_of(folder)(hidden, Facts().lm_head)[2], expected)


def test_vllms_reduced_vocabulary(tmp_path: Path) -> None:
    tokens = torch.arange(319, -1, -4)
    folder, hidden = vllm_copy(tmp_path), torch.randn(3, 64)
    edit_tensors(folder, "model.safetensors", "model.safetensors", lambda tensors: tensors.update(token_map=tokens))
    heads = heads_of(folder)
    assert heads.num_draft_tokens == 80
    full = heads_of(golden_dir("medusa_a"))(hidden, Facts().lm_head)
    torch.testing.assert_close(heads(hidden, Facts().lm_head), full[..., tokens])
    assert heads.to_target(torch.tensor([[0, 79]])).tolist() == [[319, 3]]
    assert (heads.to_draft(315), heads.to_draft(316)) == (1, None)


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (torch.tensor([0, 400]), "different target ids below 320"),
        (torch.tensor([1, 1]), "different target ids below 320"),
        (torch.ones(3), "must be a list of int64"),
    ],
)
def test_a_reduced_vocabulary_that_cannot_be_is_refused(tmp_path: Path, tokens: Tensor, says: str) -> None:
    folder = vllm_copy(tmp_path)
    edit_tensors(folder, "model.safetensors", "model.safetensors", lambda tensors: tensors.update(token_map=tokens))
    assert says in refused(folder)


def test_what_is_wrong_with_vllms_layout_is_said_in_its_own_names(tmp_path: Path) -> None:
    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors["blocks.1.layers.0.bias"], tensors["lm_heads.3.weight"]
        tensors["blocks.2.layers.0.weight"] = torch.ones(64, 63)
        tensors["norm.weight"] = torch.ones(64)
        tensors["blocks.0.layers.0.bias"] = torch.ones(64, dtype=torch.int8)

    folder = vllm_copy(tmp_path)
    edit_tensors(folder, "model.safetensors", "model.safetensors", damage)
    message = refused(folder)
    for part in (
        "missing: blocks.1.layers.0.bias, lm_heads.3.weight",
        "unexpected: norm.weight",
        "blocks.2.layers.0.weight has shape [64, 63], expected [64, 64]",
        "blocks.0.layers.0.bias is int8",
    ):
        assert part in message


def refused(folder: Path, facts: Facts | None = None) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_medusa(str(folder), facts or Facts())
    return str(caught.value)


def test_another_target_is_one_error_that_names_both_sizes() -> None:
    message = refused(golden_dir("medusa_a"), Facts(hidden_size=96, vocab_size=400))
    assert message == (
        "Medusa heads 'medusa_a' does not fit the target 'facts': hidden size 64, but the target has 96; "
        "vocabulary 320, but the target has 400"
    )


def test_the_report_lists_missing_leftover_misshapen_and_mistyped(tmp_path: Path) -> None:
    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors["1.0.linear.bias"]
        tensors["lm_head.weight"] = torch.ones(2, 2)
        tensors["2.0.linear.weight"] = torch.ones(64, 63)
        tensors["0.0.linear.bias"] = torch.ones(64, dtype=torch.int8)

    folder = copy_golden("medusa_b", tmp_path)
    edit_tensors(folder, LAYOUT_B, LAYOUT_B, damage)
    message = refused(folder, Facts(hidden_size=32))
    for part in (
        "missing: 1.0.linear.bias",
        "unexpected: lm_head.weight",
        "2.0.linear.weight has shape [64, 63], expected [64, 64]",
        "0.0.linear.bias is int8",
        "hidden size 64, but the target has 32",
    ):
        assert part in message


@pytest.mark.parametrize(
    "names",
    [["5.0.linear.weight", "5.0.linear.bias"], ["blocks.0.layers.0.linear.weight"], ["9999999999.0.linear.weight"], []],
)
def test_other_names_are_shown_not_guessed(tmp_path: Path, names: list[str]) -> None:
    def rename(tensors: dict[str, Tensor]) -> None:
        tensors.clear()
        tensors |= {name: torch.ones(64, 64) for name in names}

    folder = copy_golden("medusa_b", tmp_path)
    edit_tensors(folder, LAYOUT_B, LAYOUT_B, rename)
    message = refused(folder)
    assert "expected 0.0.linear.weight" in message
    assert (names or ["nothing"])[0] in message


def test_a_model_without_heads_says_what_is_looked_for() -> None:
    assert "medusa_lm_head.safetensors or medusa_lm_head.pt, or medusa_head.*" in refused(golden_dir("base_a"))
