"""Medusa heads: every published layout by its tensors, and one strict report for what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from explorer.checkpoints.medusa import load_medusa
from explorer.errors import CheckpointError
from explorer.models.medusa_heads import MedusaHeads
from tests.support.checkpoints import Facts, copy_golden, edit_tensors, golden_dir

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


def test_two_residual_blocks_are_inferred(tmp_path: Path) -> None:
    """The reference repeats one block, so its files hold equal tensors twice."""

    def repeat(tensors: dict[str, Tensor]) -> None:
        tensors |= {name.replace(".0.", ".1."): tensor.clone() for name, tensor in tensors.items()}

    folder = copy_golden("medusa_b", tmp_path)
    edit_tensors(folder, LAYOUT_B, LAYOUT_B, repeat)
    heads = heads_of(folder)
    assert (heads.num_heads, heads.num_layers, heads.own_lm) == (3, 2, False)


def refused(folder: Path, facts: Facts | None = None) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_medusa(str(folder), facts or Facts())
    return str(caught.value)


def test_another_target_is_one_error_that_names_both_sizes() -> None:
    message = refused(golden_dir("medusa_a"), Facts(hidden_size=96, vocab_size=400))
    assert message == (
        "Medusa heads 'medusa_a' does not fit: hidden size 64, but the target has 96; "
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
