"""EAGLE-3 files: published layouts load, everything else is refused in one message that lists all that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import FEATURE_LAYERS, load_eagle3, published_layers
from explorer.errors import CheckpointError
from explorer.models.eagle3_layer import Eagle3Drafter
from tests.support.checkpoints import Facts, edit_json, golden_dir
from tests.support.eagle3_files import (
    BIN,
    DRAFTED,
    HIDDEN,
    LAYERS,
    SAFE,
    VOCAB,
    eagle3_tensors,
    write_eagle3,
    write_speculators,
)
from tests.support.eagle_twin import Twin3

EIGHT = Facts(num_layers=8)


def drafter_of(folder: Path, facts: Facts = EIGHT) -> Eagle3Drafter:
    loaded = load_eagle3(str(folder), facts)
    assert isinstance(loaded.module, Eagle3Drafter)
    assert loaded.feature_layers == loaded.module.config.feature_layers
    return loaded.module


def refused(folder: Path, facts: Facts = EIGHT) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_eagle3(str(folder), facts)
    return str(caught.value)


@pytest.mark.parametrize("file", [SAFE, BIN])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_published_files_load_and_predict_what_the_twin_predicts(tmp_path: Path, file: str, dtype: torch.dtype) -> None:
    tensors = {name: t.to(dtype) if t.is_floating_point() else t for name, t in eagle3_tensors().items()}
    made = drafter_of(write_eagle3(tmp_path, tensors, file=file))
    assert made.config.feature_layers == (2, 4, 5)
    assert {parameter.dtype for parameter in made.parameters()} == {torch.float32}
    assert torch.equal(made.embedding, EIGHT.embed_tokens.weight)
    assert_equals_twin(made, Twin3(tensors, 4, 500000.0, 1e-5))


def assert_equals_twin(made: Eagle3Drafter, twin: Twin3) -> None:
    """True features, then three tokens on the drafter's own: hidden states and logits."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(VOCAB, (12,), generator=generator)
    features = torch.randn(9, made.config.feature_size, generator=generator)
    expected = twin.predicted(made.embedding, tokens, features)
    hidden = [made(tokens[:9], made.combine(features), torch.arange(9), None, None)]
    inputs = made.combine(features)
    for count in (10, 11, 12):
        inputs = torch.cat([inputs, hidden[-1][-1:]])
        hidden.append(made(tokens[:count], inputs, torch.arange(count), None, None))
    torch.testing.assert_close(hidden[-1], expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(made.logits(hidden[-1]), twin.logits(expected), atol=1e-4, rtol=1e-4)


def test_a_target_and_heads_of_other_sizes(tmp_path: Path) -> None:
    """target_hidden_size, head_dim and biases of the projections; then the embedding is the drafter's own."""
    own = torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(2))
    tensors = eagle3_tensors(target_size=48, head_dim=20) | {"embed_tokens.weight": own}
    for part, rows in (("q", 80), ("k", 40), ("v", 40)):
        tensors[f"midlayer.self_attn.{part}_proj.bias"] = torch.linspace(-1, 1, rows)
    facts = Facts(hidden_size=48, num_layers=8)
    folder = write_eagle3(tmp_path, tensors, target_hidden_size=48, head_dim=20)
    made = drafter_of(folder, facts)
    assert made.config.feature_size == 3 * 48
    assert torch.equal(made.embedding, own)
    assert_equals_twin(made, Twin3(tensors, 4, 500000.0, 1e-5))
    del tensors["embed_tokens.weight"]
    message = refused(write_eagle3(tmp_path / "bare", tensors, target_hidden_size=48, head_dim=20), facts)
    assert "missing: embed_tokens.weight (the target's has width 48, not 64)" in message


def test_a_residual_of_the_normed_hidden_state(tmp_path: Path) -> None:
    """vLLM's field, in config.json beside the published ones."""
    tensors = eagle3_tensors()
    made = drafter_of(write_eagle3(tmp_path, tensors, norm_before_residual=True))
    assert_equals_twin(made, Twin3(tensors, 4, 500000.0, 1e-5, norm_before_residual=True))
    with pytest.raises(AssertionError):
        assert_equals_twin(made, Twin3(tensors, 4, 500000.0, 1e-5))


@pytest.mark.parametrize("normed", [False, True], ids=["bare residual", "normed residual"])
def test_speculators_files_predict_what_the_twin_predicts(tmp_path: Path, normed: bool) -> None:
    tensors = eagle3_tensors()
    made = drafter_of(write_speculators(tmp_path, norm_before_residual=normed, **{FEATURE_LAYERS: [1, 4, 6]}))
    assert made.config.feature_layers == (1, 4, 6) and made.config.norm_before_residual is normed
    assert_equals_twin(made, Twin3(tensors, 4, 500000.0, 1e-5, norm_before_residual=normed))


def test_speculators_other_networks_are_refused(tmp_path: Path) -> None:
    assert "norm_output is on" in refused(write_speculators(tmp_path / "norm", norm_output=True))
    assert "speculators calls it peagle" in refused(write_speculators(tmp_path / "p", speculators_model_type="peagle"))
    norms = {"layers.0.self_attn.q_norm.weight": torch.ones(16)}
    assert "unexpected: midlayer.self_attn.q_norm" in refused(write_speculators(tmp_path / "qwen3", norms))


def test_an_embedding_that_is_a_copy_is_shared(tmp_path: Path) -> None:
    copy = EIGHT.embed_tokens.weight.detach().clone()
    made = drafter_of(write_eagle3(tmp_path, eagle3_tensors() | {"embed_tokens.weight": copy}))
    assert made.embedding.data_ptr() == EIGHT.embed_tokens.weight.data_ptr()


def test_draft_ids_are_the_files(tmp_path: Path) -> None:
    made = drafter_of(write_eagle3(tmp_path))
    assert made.num_draft_tokens == DRAFTED
    assert made.to_target(torch.arange(4)).tolist() == [1, 2, 4, 5]
    assert (made.to_draft(5), made.to_draft(6)) == (3, None)


@pytest.mark.parametrize("with_maps", [False, True], ids=["without maps", "with maps of zeros"])
def test_the_whole_vocabulary_needs_no_maps(tmp_path: Path, with_maps: bool) -> None:
    tensors = eagle3_tensors()
    tensors["lm_head.weight"] = torch.randn(VOCAB, HIDDEN)
    maps = {"d2t": torch.zeros(VOCAB, dtype=torch.int64), "t2d": torch.ones(VOCAB, dtype=torch.bool)}
    tensors = {name: tensor for name, tensor in tensors.items() if name not in maps} | (maps if with_maps else {})
    made = drafter_of(write_eagle3(tmp_path, tensors, draft_vocab_size=VOCAB))
    assert made.num_draft_tokens == VOCAB
    assert made.to_draft(6) == 6
    wrong = tensors | {"d2t": torch.arange(VOCAB)}
    assert "d2t maps tokens" in refused(write_eagle3(tmp_path / "wrong", wrong, draft_vocab_size=VOCAB))


def test_a_shared_head_is_the_targets(tmp_path: Path) -> None:
    tensors = eagle3_tensors()
    own = tensors.pop("lm_head.weight")
    made = drafter_of(write_eagle3(tmp_path / "reduced", tensors, lm_head_shared=True))
    drafted = made.to_target(torch.arange(DRAFTED))
    assert torch.equal(made.lm_head.weight, EIGHT.lm_head.weight[drafted])
    whole = {name: tensor for name, tensor in tensors.items() if name not in ("d2t", "t2d")}
    made = drafter_of(write_eagle3(tmp_path / "whole", whole, lm_head_shared=True, draft_vocab_size=VOCAB))
    assert torch.equal(made.lm_head.weight, EIGHT.lm_head.weight)
    both = write_eagle3(tmp_path / "both", tensors | {"lm_head.weight": own}, lm_head_shared=True)
    assert "lm_head_shared is on, but there is lm_head.weight" in refused(both)
    assert "must be true or false" in refused(write_eagle3(tmp_path / "odd", tensors, lm_head_shared="yes"))
    lost = {name: tensor for name, tensor in tensors.items() if name != "d2t"}
    assert "missing: d2t" in refused(write_eagle3(tmp_path / "lost", lost, lm_head_shared=True))


def test_what_the_config_leaves_out_the_tensors_tell(tmp_path: Path) -> None:
    folder = write_eagle3(tmp_path, draft_vocab_size=None, num_key_value_heads=None, rope_theta=None)
    config = drafter_of(folder).config
    assert (config.num_key_value_heads, config.draft_vocab_size, config.rope_theta) == (2, DRAFTED, 10000.0)


def test_layers_by_default_and_by_name(tmp_path: Path) -> None:
    assert published_layers(32) == (2, 16, 29)
    assert published_layers(7) == (2, 3, 4)
    assert published_layers(6) is None
    message = refused(write_eagle3(tmp_path), Facts(num_layers=3))
    assert (
        "2, 1 and 0, are not three in order in a target of 3 layers: list others in config.json as eagle_aux" in message
    )
    assert drafter_of(write_eagle3(tmp_path, layers=LAYERS), Facts(num_layers=3)).config.feature_layers == (0, 1, 2)
    two = write_eagle3(tmp_path / "two", eagle3_tensors(num_features=2), layers=[2, 0])
    assert drafter_of(two, Facts()).config.feature_layers == (2, 0)


@pytest.mark.parametrize("layers", [[0, 1, 1], [0, 1, 8], [-1, 1, 2], [], ["0", 1, 2], [True, 2, 3], 5], ids=str)
def test_layers_that_cannot_be(tmp_path: Path, layers: Any) -> None:
    message = refused(write_eagle3(tmp_path, layers=layers))
    assert "must be different layers from 0 to 7" in message


def test_layers_counted_otherwise_are_refused(tmp_path: Path) -> None:
    nested = {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}
    assert "stands under eagle_config" in refused(write_eagle3(tmp_path, eagle_config=nested))


def test_another_target_is_one_error_that_names_both_sizes(tmp_path: Path) -> None:
    message = refused(write_eagle3(tmp_path / "other"), Facts(hidden_size=96, vocab_size=400, num_layers=8))
    assert "EAGLE-3 drafter 'other' does not fit the target 'facts': " in message
    assert "hidden size 64, but the target has 96" in message
    assert "vocabulary 320, but the target has 400" in message


def test_the_report_lists_all_at_once(tmp_path: Path) -> None:
    tensors = eagle3_tensors()
    del tensors["midlayer.hidden_norm.weight"]
    tensors["fc.bias"] = torch.ones(HIDDEN)
    tensors["fc.weight"] = tensors["fc.weight"][:, :128].contiguous()
    tensors["norm.weight"] = torch.ones(HIDDEN, dtype=torch.int32)
    tensors["embed_tokens.weight"] = torch.ones(VOCAB, 32)
    tensors["d2t"][3] += 1000
    message = refused(write_eagle3(tmp_path, tensors), Facts(num_layers=5))
    for part in (
        "missing: midlayer.hidden_norm.weight",
        "unexpected: fc.bias",
        "fc.weight has shape [64, 128], expected [64, 192]",
        "norm.weight is int32",
        "embed_tokens.weight has shape [320, 32], expected [320, 64]",
        "d2t must map draft ids to different target ids below 320",
        "2, 2 and 2, are not three in order",
    ):
        assert part in message


def _no_map(tensors: dict[str, Tensor]) -> None:
    del tensors["d2t"]


def _map_of_floats(tensors: dict[str, Tensor]) -> None:
    tensors["d2t"] = tensors["d2t"].float()


def _short_map(tensors: dict[str, Tensor]) -> None:
    tensors["d2t"] = tensors["d2t"][:-1].clone()


def _other_tokens(tensors: dict[str, Tensor]) -> None:
    tensors["t2d"] = tensors["t2d"].logical_not()


def _short_flags(tensors: dict[str, Tensor]) -> None:
    tensors["t2d"] = tensors["t2d"][:-1].clone()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_no_map, "missing: d2t"),
        (_map_of_floats, "d2t must be a list of int64"),
        (_short_map, "d2t has shape [199], expected [200]"),
        (_other_tokens, "t2d names other tokens than d2t"),
        (_short_flags, "t2d names other tokens than d2t"),
    ],
)
def test_vocabularies_that_do_not_fit(tmp_path: Path, damage: Callable[[dict[str, Tensor]], None], words: str) -> None:
    tensors = eagle3_tensors()
    damage(tensors)
    assert words in refused(write_eagle3(tmp_path, tensors))


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": None},
        {"hidden_size": 10**6},
        {"num_attention_heads": 5},
        {"num_key_value_heads": 3},
        {"draft_vocab_size": 10**12},
        {"draft_vocab_size": "200"},
        {"head_dim": 0},
        {"target_hidden_size": -64},
        {"rms_norm_eps": []},
        {"hidden_act": "no_such_function"},
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        {"speculators_model_type": "eagle3"},
        {"norm_before_residual": 1},
        {"norm_before_fc": True},
        {"fc_norm": True},
        {"norm_output": True},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_an_unusable_config_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = write_eagle3(tmp_path)
    edit_json(folder / "config.json", **changes)
    refused(folder)


def test_other_kinds_are_told_apart_both_ways(tmp_path: Path) -> None:
    message = refused(golden_dir("eagle_bias"))
    assert "it is an EAGLE-1 or EAGLE-2 drafter (it has layers.0." in message
    assert "choose the method eagle1 or eagle2" in message
    with pytest.raises(CheckpointError, match="choose the method eagle3"):
        load_eagle(str(write_eagle3(tmp_path)), EIGHT)
    assert "missing: d2t, fc.weight" in refused(write_eagle3(tmp_path / "empty", {"0.weight": torch.ones(1)}))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "config.json").write_text("[]"),
        lambda folder: (folder / "config.json").unlink(),
        lambda folder: (folder / SAFE).write_bytes((folder / SAFE).read_bytes()[:9000]),
        lambda folder: (folder / SAFE).unlink(),
    ],
    ids=["broken config", "no config", "cut weights", "no weights"],
)
def test_broken_files(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    folder = write_eagle3(tmp_path)
    damage(folder)
    refused(folder)
