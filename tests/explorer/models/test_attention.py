"""Our attention behind transformers' interface gives what transformers' own eager attention gives."""

from __future__ import annotations

import pytest
import torch

from explorer.models.attention import register_tree_attention
from kernels.dispatch import BackendUnavailableError
from tests.support.tiny import VOCAB, tiny_model


def test_a_model_computes_the_same_with_it() -> None:
    ours, eager = tiny_model(), tiny_model()
    eager.set_attn_implementation("eager")
    ids = torch.arange(12)[None] * 5 % VOCAB
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids).logits, eager(ids).logits, atol=1e-5, rtol=0)


def test_a_mask_is_obeyed() -> None:
    ours, eager = tiny_model(), tiny_model()
    eager.set_attn_implementation("eager")
    ids = torch.arange(6)[None]
    seen = torch.eye(6, dtype=torch.bool)
    seen[:, 0] = True
    seen[5, 3] = True
    added = torch.where(seen, 0.0, torch.finfo(torch.float32).min)
    with torch.inference_mode():
        expected = eager(ids, attention_mask=added[None, None]).logits
        got = ours(ids, attention_mask=seen[None, None]).logits
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)


def test_registering_twice_gives_one_name() -> None:
    assert register_tree_attention("auto") == register_tree_attention("naive") == "tree_attention_naive"


def test_a_backend_that_is_not_here_is_refused() -> None:
    with pytest.raises(BackendUnavailableError, match="NVIDIA GPU"):
        register_tree_attention("triton")


@pytest.mark.parametrize("backend", ["cuda", ""])
def test_an_unknown_backend_is_refused(backend: str) -> None:
    with pytest.raises(BackendUnavailableError, match="unknown backend"):
        register_tree_attention(backend)
