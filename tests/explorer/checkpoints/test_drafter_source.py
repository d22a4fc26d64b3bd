"""Drafters as their files have them, whatever the layout, and what they call their target."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.checkpoints.drafter_source import EagleSource, MedusaSource, read_drafter
from explorer.checkpoints.target_ends import read_target_ends
from explorer.errors import CheckpointError
from tests.support.checkpoints import copy_golden, edit_json, edit_tensors, golden_dir, vllm_copy
from tests.support.eagle3_files import eagle3_tensors, write_eagle3
from tests.support.medusa2_files import write_medusa2
from tests.support.variants import with_one_kv_head, with_repeated_block

ENDS = read_target_ends(str(golden_dir("base_a")))


@pytest.mark.parametrize("name", ["medusa_a", "medusa_b", "medusa_c"])
def test_heads_of_every_layout(name: str) -> None:
    found = read_drafter(str(golden_dir(name)), ENDS)
    assert isinstance(found, MedusaSource)
    assert found.has_matrices is (name != "medusa_b")
    matrices = [key for key in found.tensors if not found.is_block(key)]
    assert len(matrices) == (found.num_heads if found.has_matrices else 0)


def test_vllms_heads_are_the_same_heads(tmp_path: Path) -> None:
    ours, theirs = (read_drafter(str(folder), ENDS) for folder in (golden_dir("medusa_a"), vllm_copy(tmp_path)))
    assert isinstance(ours, MedusaSource) and isinstance(theirs, MedusaSource)
    assert ours.tensors.keys() == theirs.tensors.keys()
    assert all(torch.equal(tensor, theirs.tensors[name]) for name, tensor in ours.tensors.items())


def test_a_repeated_block_is_there_as_often_as_it_is_used(tmp_path: Path) -> None:
    found = read_drafter(str(with_repeated_block(tmp_path)), ENDS)
    assert isinstance(found, MedusaSource)
    assert found.num_blocks == 2


def test_an_eagle_drafter_keeps_its_dtype_and_its_embedding(tmp_path: Path) -> None:
    half = read_drafter(str(with_one_kv_head(tmp_path)), ENDS)
    assert isinstance(half, EagleSource)
    assert {tensor.dtype for tensor in half.weights.values()} == {torch.float16}
    whole = read_drafter(str(golden_dir("eagle_bias")), ENDS)
    assert isinstance(whole, EagleSource)
    assert "fc.bias" in whole.weights and "embed_tokens.weight" not in whole.weights
    assert whole.embedding is not None
    is_copy = torch.equal(whole.embedding, ENDS.embed_tokens.weight)
    assert whole.own_embedding().keys() == (set() if is_copy else {"embed_tokens.weight"})


def test_the_draft_vocabulary_as_target_ids(tmp_path: Path) -> None:
    folder = copy_golden("eagle_nobias", tmp_path)
    ids = torch.tensor([5, 7, 11])
    edit_tensors(
        folder,
        "pytorch_model.bin",
        "model.safetensors",
        lambda tensors: tensors.__setitem__("d2t", ids - torch.arange(3)),
    )
    found = read_drafter(str(folder), ENDS)
    assert isinstance(found, EagleSource)
    told = found.draft_ids()
    assert told is not None and torch.equal(told, ids)


def test_what_does_not_fit_is_refused_and_the_targets_name_is_found(tmp_path: Path) -> None:
    folder = copy_golden("medusa_b", tmp_path)
    edit_json(folder / "config.json", base_model_name_or_path="somebody/target")
    assert read_drafter(str(folder), ENDS).base == "somebody/target"
    (folder / "config.json").unlink()
    assert read_drafter(str(folder), ENDS).base == "base_a"
    edit_tensors(
        folder,
        "medusa_lm_head.safetensors",
        "medusa_lm_head.safetensors",
        lambda tensors: tensors.pop("0.0.linear.weight"),
    )
    with pytest.raises(CheckpointError, match="missing"):
        read_drafter(str(folder), ENDS)


def test_an_eagle3_drafter_that_does_not_fit_is_one_error(tmp_path: Path) -> None:
    tensors = eagle3_tensors()
    del tensors["norm.weight"]
    with pytest.raises(CheckpointError, match=r"EAGLE-3 drafter .*missing: norm\.weight"):
        read_drafter(str(write_eagle3(tmp_path, tensors, layers=[1, 2, 3])), ENDS)


def test_a_drafter_that_adapts_its_target_fits_no_layout(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="which no layout holds"):
        read_drafter(str(write_medusa2(tmp_path)), read_target_ends(str(golden_dir("base_b"))))
