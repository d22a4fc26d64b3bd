"""What a server does not load is named, and what convert wrote for it is never refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from explorer.checkpoints.drafter_source import read_drafter
from explorer.checkpoints.int8_folder import quantize_folder
from explorer.checkpoints.layouts import LAYOUTS, write_layout
from explorer.checkpoints.serving import check_layout, token_map
from explorer.checkpoints.target_ends import read_target_ends
from explorer.errors import CheckpointError
from tests.explorer.checkpoints.test_layouts import put, reduced
from tests.support.checkpoints import copy_golden, edit_json, edit_tensors, golden_dir, vllm_copy

ENDS = read_target_ends(str(golden_dir("base_a")))


def check(server: str, folder: Path) -> None:
    check_layout(server, folder, folder.name, read_drafter(str(folder), ENDS))


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_what_convert_wrote_is_loaded(tmp_path: Path, server: str) -> None:
    sources = [
        reduced(tmp_path / "reduced"),
        golden_dir("eagle_nobias"),
        golden_dir("medusa_a"),
        golden_dir("medusa_b"),
    ]
    for number, source in enumerate(sources):
        drafter = read_drafter(str(source), ENDS)
        if drafter.kind in LAYOUTS[server].makers:
            check(server, put(write_layout(server, drafter), tmp_path / str(number)))
    assert token_map(tmp_path / "0") == (tmp_path / "0" / "token_map.pt" if server == "sglang" else None)


@pytest.mark.parametrize(
    ("server", "name", "says"),
    [
        ("vllm", "medusa_a", "Medusa's own names"),
        ("vllm", "medusa_b", "Medusa's own names"),
        ("vllm", "eagle_bias", "fc has a bias"),
        ("sglang", "eagle_bias", r"architectures is not \[LlamaForCausalLMEagle\]"),
        ("sglang", "eagle_nobias", "fc has no bias"),
        ("sglang", "medusa_a", "SGLang has no Medusa"),
    ],
)
def test_published_layouts_are_refused_with_what_is_missing(server: str, name: str, says: str) -> None:
    with pytest.raises(CheckpointError, match=says) as caught:
        check(server, golden_dir(name))
    if "no Medusa" not in says:
        assert f"convert {name} --to {server}" in str(caught.value)


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_a_draft_vocabulary_and_speculators_are_refused(tmp_path: Path, server: str) -> None:
    with pytest.raises(CheckpointError, match="draft vocabulary"):
        check(server, reduced(tmp_path / "d"))
    drafter = read_drafter(str(reduced(tmp_path / "again")), ENDS)
    with pytest.raises(CheckpointError, match="speculators' layout"):
        check(server, put(write_layout("speculators", drafter), tmp_path / "s"))


def test_the_command_that_mends_names_a_target_that_is_not_the_default() -> None:
    drafter = read_drafter(str(golden_dir("eagle_bias")), ENDS)
    with pytest.raises(CheckpointError, match=r"convert mine --to vllm --target '/my models/t' --out DIR`"):
        check_layout("vllm", golden_dir("eagle_bias"), "mine", drafter, "/my models/t")


def test_a_config_that_means_something_else_there_is_told(tmp_path: Path) -> None:
    folder = copy_golden("eagle_bias", tmp_path)
    edit_json(folder / "config.json", bias=True)
    with pytest.raises(CheckpointError, match="bias is true, which there means"):
        check("vllm", folder)


def test_vllms_heads_need_their_fields(tmp_path: Path) -> None:
    folder = vllm_copy(tmp_path)
    with pytest.raises(CheckpointError, match="medusa_fc_bias is not true"):
        check("vllm", folder)
    edit_json(folder / "config.json", medusa_fc_bias=True, vocab_size=320)
    check("vllm", folder)
    edit_json(folder / "config.json", model_type="llama")
    with pytest.raises(CheckpointError, match="model_type is not medusa"):
        check("vllm", folder)

    def cut(tensors: dict[str, Tensor]) -> None:
        tensors["token_map"] = torch.arange(0, 320, 2)

    edit_json(folder / "config.json", model_type="medusa")
    edit_tensors(folder, "model.safetensors", "model.safetensors", cut)
    with pytest.raises(CheckpointError, match="truncated_vocab_size and the tensor token_map"):
        check("vllm", folder)


@pytest.mark.parametrize("server", ["vllm", "sglang"])
def test_integers_are_no_weights_there(tmp_path: Path, server: str) -> None:
    """In all else these are what the server loads."""
    folder = put(write_layout(server, read_drafter(str(golden_dir("eagle_nobias")), ENDS)), tmp_path / server)
    check(server, folder)
    with pytest.raises(
        CheckpointError, match=f"{server} does not load int8 as it is: it is stored as 8-bit integers; "
    ):
        check(server, put(quantize_folder(folder), tmp_path / "int8"))
