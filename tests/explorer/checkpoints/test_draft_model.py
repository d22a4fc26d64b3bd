"""Draft models: whole ones must speak the target's tokens, borrowing ones must have its sizes; one report says all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from explorer.checkpoints.draft_model import LoadedDraftModel, load_draft_model
from explorer.checkpoints.int8_folder import quantize_folder
from explorer.checkpoints.target import load_reference
from explorer.errors import CheckpointError
from explorer.training.draft_model import DraftModelOptions, FirstLayers
from explorer.training.export import save_draft_model
from tests.support.checkpoints import copy_golden, edit_json, edit_tensors, golden_dir
from tests.support.goldens import golden_target
from tests.support.tiny import tiny_model, tiny_target

WEIGHTS = "model.safetensors"
IDS = torch.tensor([[1, 3, 89, 87, 73]])


def load(source: Path) -> LoadedDraftModel:
    return load_draft_model(str(source), golden_target("base_a"))


def refused(source: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(source)
    return str(caught.value)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as the recipe writes it, for ``tiny_target``."""
    network = FirstLayers(tiny_model().get_decoder(), DraftModelOptions(num_layers=1, intermediate_size=24))
    save_draft_model(network, tmp_path / "draft", "tiny")
    return tmp_path / "draft"


def test_a_whole_model_keeps_its_own_weights() -> None:
    """Sharded, with another model's Medusa heads in its files: they are no part of it."""
    loaded = load(golden_dir("medusa_c"))
    assert not loaded.shares_embedding
    assert loaded.record.name == "medusa_c"
    assert loaded.record.num_parameters == sum(p.numel() for p in loaded.model.parameters())
    assert loaded.record.num_bytes == 4 * loaded.record.num_parameters
    reference = load_reference(str(golden_dir("medusa_c")), torch.device("cpu"), torch.float32)
    assert torch.allclose(loaded.model(IDS).logits, reference(IDS).logits, atol=1e-4)
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())


def test_it_takes_the_targets_dtype(shared: Path) -> None:
    target = tiny_target()
    target.dtype = torch.bfloat16
    assert load_draft_model(str(shared), target).model.model.norm.weight.dtype == torch.bfloat16


def test_another_tokenizer_is_refused_with_examples() -> None:
    message = refused(golden_dir("base_b"))
    assert message.startswith(
        "draft model 'base_b' does not fit the target 'base_a': its tokenizer is not the target's: "
    )
    assert "0 is '!', not '<unk>'" in message
    assert "<|im_start|>" not in message, "three examples are enough"


def test_a_hostile_token_is_shown_escaped(tmp_path: Path) -> None:
    folder = copy_golden("base_a", tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    words = tokenizer["model"]["vocab"]
    words["\x1b[2J\u202e"] = words.pop("!")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    message = refused(folder)
    assert r"'\x1b[2J\u202e'" in message and "\x1b" not in message and "1 ids differ" in message


def test_a_model_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = copy_golden("base_a", tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink()
    assert "tokenizer" in refused(folder)


def grow(folder: Path, num_ids: int) -> None:
    """Give a copied target ``num_ids`` more ids, or fewer."""

    def change(tensors: dict[str, Tensor]) -> None:
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            padded = functional.pad(tensors[name], (0, 0, 0, max(num_ids, 0)))
            tensors[name] = padded[: 320 + num_ids]

    edit_tensors(folder, WEIGHTS, WEIGHTS, change)
    edit_json(folder / "config.json", vocab_size=320 + num_ids)


def test_padding_of_the_vocabulary_is_no_difference(tmp_path: Path) -> None:
    folder = copy_golden("base_a", tmp_path)
    grow(folder, 16)
    assert load(folder).model.config.vocab_size == 336


def test_a_vocabulary_that_lacks_real_tokens_is_refused(tmp_path: Path) -> None:
    folder = copy_golden("base_a", tmp_path)
    grow(folder, -2)
    message = refused(folder)
    assert "2 ids differ (318 is missing, not " in message


def test_a_borrowing_model_uses_the_targets_layers(shared: Path) -> None:
    target = tiny_target()
    loaded = load_draft_model(str(shared), target)
    assert loaded.shares_embedding
    assert loaded.model.get_input_embeddings() is target.embed_tokens
    assert loaded.model.get_output_embeddings() is target.lm_head
    own = [p for name, p in loaded.model.named_parameters() if "embed" not in name and "lm_head" not in name]
    assert loaded.record.num_parameters == sum(p.numel() for p in own)
    assert loaded.record.num_bytes == 4 * loaded.record.num_parameters


def test_a_borrowing_model_of_a_tied_target(tmp_path: Path) -> None:
    """Tied, embedding and LM head are one parameter under two names."""
    model, target = tiny_model(tie_word_embeddings=True), tiny_target(tie_word_embeddings=True)
    network = FirstLayers(model.get_decoder(), DraftModelOptions(num_layers=2, intermediate_size=48))
    save_draft_model(network, tmp_path, "tied")
    loaded = load_draft_model(str(tmp_path), target)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    assert torch.allclose(loaded.model(ids).logits, model(ids).logits, atol=3e-2)  # float16 on disk
    assert loaded.record.num_parameters == target.num_parameters - target.embed_tokens.weight.numel()


def shared_refused(folder: Path, **target: int) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_draft_model(str(folder), tiny_target(**target))
    return str(caught.value)


def test_a_borrowing_model_has_the_targets_sizes(shared: Path) -> None:
    message = shared_refused(shared, hidden_size=64, vocab_size=70)
    assert "hidden size 32, but the target has 64" in message
    assert "vocabulary 61, but the target has 70" in message


def test_an_embedding_that_is_stored_all_the_same_is_refused(shared: Path) -> None:
    def add(tensors: dict[str, Tensor]) -> None:
        tensors["model.embed_tokens.weight"] = torch.zeros(61, 32)

    edit_tensors(shared, WEIGHTS, WEIGHTS, add)
    assert "model.embed_tokens.weight is stored, though config.json says embedding_shared" in shared_refused(shared)


def test_missing_leftover_and_misshapen_tensors_are_listed(shared: Path) -> None:
    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors["model.norm.weight"]
        tensors["model.layers.5.mlp.up_proj.weight"] = torch.zeros(2, 2)
        tensors["model.layers.0.mlp.up_proj.weight"] = torch.zeros(24, 31)

    edit_tensors(shared, WEIGHTS, WEIGHTS, damage)
    message = shared_refused(shared)
    for part in ("missing: model.norm.weight", "unexpected: model.layers.5", "has shape [24, 31], expected [24, 32]"):
        assert part in message


def test_without_the_flag_the_embedding_is_missed(shared: Path) -> None:
    edit_json(shared / "config.json", embedding_shared=None)
    assert "tokenizer" in shared_refused(shared)


@pytest.mark.parametrize("value", ["yes", 1, [True]])
def test_the_flag_is_a_truth_value(shared: Path, value: object) -> None:
    edit_json(shared / "config.json", embedding_shared=value)
    assert "embedding_shared must be true or false" in shared_refused(shared)


def test_what_is_no_causal_lm_is_refused() -> None:
    assert "config" in refused(golden_dir("medusa_a"))
    assert "does not fit" in refused(golden_dir("eagle_bias")) or "tokenizer" in refused(golden_dir("eagle_bias"))


def as_integers(folder: Path) -> Path:
    """The same folder, its weights stored as 8-bit integers."""
    for name, data in quantize_folder(folder).files.items():
        (folder / name).write_bytes(data)
    return folder


def test_a_whole_model_of_integers_is_itself_up_to_rounding(tmp_path: Path) -> None:
    edit_json((folder := copy_golden("base_a", tmp_path)) / "generation_config.json", num_assistant_tokens=7)
    loaded, plain = load(as_integers(folder)), load(golden_dir("base_a"))
    assert loaded.record.num_parameters == plain.record.num_parameters
    assert loaded.model.generation_config.num_assistant_tokens == 7
    assert torch.equal(loaded.model.get_input_embeddings().weight, plain.model.get_input_embeddings().weight)
    found, expected = loaded.model(IDS).logits, plain.model(IDS).logits
    assert not torch.equal(found, expected)
    assert torch.allclose(found.softmax(-1), expected.softmax(-1), atol=0.05)


def test_a_borrowing_model_of_integers_is_as_strict(shared: Path) -> None:
    target = tiny_target()
    plain = load_draft_model(str(shared), target).model
    model = load_draft_model(str(as_integers(shared)), target).model
    assert model.get_input_embeddings() is target.embed_tokens
    matrix, other = (each.model.layers[0].mlp.up_proj.weight for each in (model, plain))
    assert matrix.dtype == torch.float32
    assert 0 < (matrix - other).abs().max() <= other.abs().max() / 127

    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors["model.norm.weight"], tensors["model.layers.0.mlp.up_proj.weight_scale"]

    edit_tensors(shared, WEIGHTS, WEIGHTS, damage)
    assert "up_proj.weight is int8 without its scale" in shared_refused(shared)
    edit_tensors(shared, WEIGHTS, WEIGHTS, lambda tensors: tensors.pop("model.layers.0.mlp.up_proj.weight"))
    message = shared_refused(shared)
    assert "missing: model.layers.0.mlp.up_proj.weight, model.norm.weight" in message


def test_integers_are_never_taken_for_weights(shared: Path) -> None:
    def strip(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if name.endswith("_scale")]:
            del tensors[name]

    edit_tensors(as_integers(shared), WEIGHTS, WEIGHTS, strip)
    assert "mlp.up_proj.weight is int8 without its scale" in shared_refused(shared)
