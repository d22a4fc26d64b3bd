"""A file of ours beside Medusa heads without matrices: the tokens that they draft from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from tests.explorer.checkpoints.test_medusa import heads_of, refused
from tests.support.checkpoints import Facts, copy_golden, golden_dir


def with_token_map(folder: Path, tensors: dict[str, Tensor], name: str = "medusa_b") -> Path:
    copy = copy_golden(name, folder)
    save_file(tensors, copy / TOKEN_MAP_FILE)
    return copy


def test_a_token_map_beside_heads_without_matrices(tmp_path: Path) -> None:
    """They then draft from these rows of the target's LM head; what reads its whole head still speaks of target ids."""
    tokens, hidden, ids = torch.arange(319, -1, -4), torch.randn(5, 64), torch.arange(5)
    full, heads = heads_of(golden_dir("medusa_b")), heads_of(with_token_map(tmp_path, {"token_map": tokens}))
    assert heads.num_draft_tokens == 80
    logits = heads(hidden, heads.head_layer(Facts().lm_head))
    torch.testing.assert_close(logits, full(hidden, Facts().lm_head)[..., tokens])
    assert torch.equal(heads.guess_next(ids, hidden, Facts().lm_head), full.guess_next(ids, hidden, Facts().lm_head))


@pytest.mark.parametrize(
    ("name", "tensors", "says"),
    [
        ("medusa_b", {"token_map": torch.tensor([0, 400])}, "different target ids below 320"),
        ("medusa_b", {"other": torch.arange(3)}, "token_map.safetensors must hold token_map alone"),
        ("medusa_a", {"token_map": torch.arange(3)}, "for heads that have no matrix of their own"),
    ],
)
def test_a_token_map_that_cannot_be_is_refused(
    tmp_path: Path, name: str, tensors: dict[str, Tensor], says: str
) -> None:
    assert says in refused(with_token_map(tmp_path, tensors, name))
