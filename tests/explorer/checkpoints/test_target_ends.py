"""A target's embedding and LM head, read without the layers between them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from explorer.checkpoints.target_ends import read_target_ends
from explorer.errors import CheckpointError
from tests.support.checkpoints import copy_golden, edit_json, edit_tensors, golden_dir
from tests.support.goldens import golden_target


@pytest.mark.parametrize("name", ["base_a", "base_b", "medusa_c"])
def test_they_are_the_loaded_targets(name: str) -> None:
    ends, target = read_target_ends(str(golden_dir(name))), golden_target(name)
    assert torch.equal(ends.lm_head.weight.float(), target.lm_head.weight)
    assert torch.equal(ends.embed_tokens.weight.float(), target.embed_tokens.weight)
    assert (ends.hidden_size, ends.vocab_size) == (target.hidden_size, target.vocab_size)
    assert (ends.name, ends.architectures, ends.device.type) == (name, ("LlamaForCausalLM",), "cpu")


def test_a_tied_target_has_one_matrix(tmp_path: Path) -> None:
    folder = copy_golden("base_a", tmp_path)
    edit_json(folder / "config.json", tie_word_embeddings=True)
    edit_tensors(folder, "model.safetensors", "model.safetensors", lambda tensors: tensors.pop("lm_head.weight", None))
    ends = read_target_ends(str(folder))
    assert torch.equal(ends.lm_head.weight, ends.embed_tokens.weight)


def test_a_target_without_an_embedding_is_refused(tmp_path: Path) -> None:
    folder = copy_golden("base_a", tmp_path)
    edit_tensors(
        folder, "model.safetensors", "model.safetensors", lambda tensors: tensors.pop("model.embed_tokens.weight")
    )
    with pytest.raises(CheckpointError, match="embedding is not where"):
        read_target_ends(str(folder))
