"""What EAGLE drafters' files share: their kind, numbers with defaults, draft ids, embeddings lent or own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.checkpoints.eagle_files import (
    check_embedding,
    check_token_map,
    count_kv_heads,
    divides,
    find_eagle3,
    read_numbers,
    share_embedding,
)
from explorer.checkpoints.files import Report
from explorer.errors import CheckpointError
from explorer.models.eagle_layer import DrafterShape
from tests.support.checkpoints import Facts

RAW = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 320}


def problems(report: Report) -> str:
    with pytest.raises(CheckpointError) as caught:
        report.raise_if_any()
    return str(caught.value)


def test_only_eagle3_has_two_norms_before_attention() -> None:
    assert find_eagle3(["fc.weight", "layers.0.mlp.up_proj.weight"]) is None
    assert find_eagle3(["norm.weight", "midlayer.mlp.up_proj.weight"]) == "midlayer.mlp.up_proj.weight"
    assert find_eagle3(["layers.0.hidden_norm.weight"]) == "layers.0.hidden_norm.weight"


def test_numbers_have_the_references_defaults() -> None:
    numbers = read_numbers(RAW, Report("x"))
    assert numbers["max_position_embeddings"] == 2048
    assert (numbers["rope_theta"], numbers["rms_norm_eps"]) == (10000.0, 1e-6)
    assert "head_dim" not in numbers
    assert read_numbers(RAW | {"head_dim": 20}, Report("x"), ("head_dim",))["head_dim"] == 20
    nested = RAW | {"rope_parameters": {"rope_type": "default", "rope_theta": 77.0}}
    assert read_numbers(nested, Report("x"))["rope_theta"] == 77.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": True, "vocab_size": 0}, "hidden_size must be .* found True; .*vocab_size must be .* found 0"),
        ({"head_dim": "16"}, "head_dim must be a positive whole number, found '16'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"rope_theta": float("inf")}, "rope_theta must be a positive number"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope scaling"),
    ],
)
def test_unusable_numbers_are_listed(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        read_numbers(RAW | changes, Report("x"), ("head_dim", "num_hidden_layers"))


def test_kv_heads_by_the_rows_of_the_keys() -> None:
    assert count_kv_heads(RAW, torch.zeros(32, 128)) == 2
    assert count_kv_heads(RAW | {"head_dim": 32}, torch.zeros(32, 128)) == 1
    assert count_kv_heads(RAW, torch.zeros(33, 128)) == 4
    assert count_kv_heads(RAW, None) == 4


def test_heads_that_do_not_divide() -> None:
    report = Report("x")
    assert divides(DrafterShape(64, 96, 4, 2, 320), report)
    assert divides(DrafterShape(64, 96, 5, 5, 320, head_dim=16), report)
    report.raise_if_any()
    assert not divides(DrafterShape(64, 96, 5, 5, 320), report)
    assert "do not divide" in problems(report)


def test_draft_ids_are_different_target_ids() -> None:
    report = Report("x")
    check_token_map(torch.tensor([5, 5, 7]), 10, report)
    assert report.num_problems == 0
    check_token_map(torch.tensor([5, 5, 8]), 10, report)  # the third is token 10
    check_token_map(torch.tensor([5, 4, 3]), 10, report)  # three times the same token
    check_token_map(torch.tensor([[1, 2]]), 10, report)
    assert report.num_problems == 3
    assert "d2t must map draft ids to different target ids below 10" in problems(report)


def test_an_embedding_is_lent_unless_the_file_has_another() -> None:
    facts, report = Facts(), Report("x")
    own = torch.randn(320, 64)
    check_embedding(own, DrafterShape(64, 96, 4, 2, 320), report)
    check_embedding(None, DrafterShape(64, 96, 4, 2, 320), report)
    report.raise_if_any()
    check_embedding(own.T, DrafterShape(64, 96, 4, 2, 320), report)
    assert "embed_tokens.weight has shape [64, 320], expected [320, 64]" in problems(report)
    assert torch.equal(share_embedding(own, facts), own)
    for copy in (None, facts.embed_tokens.weight.detach().clone()):
        assert share_embedding(copy, facts).data_ptr() == facts.embed_tokens.weight.data_ptr()
