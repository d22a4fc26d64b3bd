"""The draft model's recipe: it starts as the target's beginning, learns, and stays small."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaModel

from explorer.training.draft_model import DraftModelOptions, DraftModelRecipe, FirstLayers
from explorer.training.loop import LoopOptions, train
from tests.support.tiny import VOCAB, tiny_model
from tests.support.training import tiny_parts

OPTIONS = DraftModelOptions(num_layers=1, intermediate_size=24, num_frequent=20, num_sampled=20)


def make_recipe(folder: Path, options: DraftModelOptions = OPTIONS) -> DraftModelRecipe:
    model = tiny_model()
    lm_head = model.get_output_embeddings().weight.detach()
    held_out = tiny_parts(folder)[1]
    return DraftModelRecipe(model.get_decoder(), lm_head, torch.arange(VOCAB), held_out, options)


def test_all_layers_at_full_width_are_the_target() -> None:
    decoder, tokens = tiny_model().get_decoder(), torch.tensor([[5, 6, 7, 8], [9, 9, 1, 0]])
    whole = FirstLayers(decoder, DraftModelOptions(num_layers=9, intermediate_size=999))
    assert torch.allclose(whole(tokens), decoder(tokens).last_hidden_state, atol=1e-5)
    assert not [name for name in whole.state_dict() if "embed" in name or "lm_head" in name]
    assert whole.state_dict().keys() == {f"model.{name}" for name in decoder.state_dict() if "embed" not in name}


def test_the_first_layers_keep_the_units_that_weigh_most() -> None:
    decoder = tiny_model().get_decoder()
    network = FirstLayers(decoder, OPTIONS)
    assert len(network.model.layers) == 1
    old, new = decoder.layers[0], network.model.layers[0]
    assert torch.equal(new.self_attn.q_proj.weight, old.self_attn.q_proj.weight)
    assert torch.equal(network.model.norm.weight, decoder.norm.weight)
    weigh = old.mlp.gate_proj.weight.norm(dim=1) * old.mlp.up_proj.weight.norm(dim=1)
    weigh = weigh * old.mlp.down_proj.weight.norm(dim=0)
    kept = [i for i in range(48) if weigh[i] >= weigh.sort().values[24]]
    assert torch.equal(new.mlp.gate_proj.weight, old.mlp.gate_proj.weight[kept])
    assert torch.equal(new.mlp.down_proj.weight, old.mlp.down_proj.weight[:, kept])
    assert new.mlp.up_proj.weight.data_ptr() != old.mlp.up_proj.weight.data_ptr()


def test_the_default_target_gives_less_than_nine_megabytes() -> None:
    options = DraftModelOptions()
    shape = {"hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 8}
    config = LlamaConfig(num_hidden_layers=options.num_layers, intermediate_size=options.intermediate_size, **shape)
    with torch.device("meta"):
        body = LlamaModel(config)
    own = sum(parameter.numel() for name, parameter in body.named_parameters() if "embed" not in name)
    assert 8e6 < 2 * own < 9e6


def test_training_raises_agreement(tmp_path: Path) -> None:
    recipe = make_recipe(tmp_path / "features")
    training = tiny_parts(tmp_path / "features")[0]
    batch = training.batch(training.batch_indices(512, 0)[0])
    before, loss_before = recipe.agreement(), recipe.loss(batch, torch.Generator().manual_seed(0), 0.0).item()
    options = LoopOptions(epochs=12, batch_tokens=256, learning_rate=5e-3, warmup_steps=5, evaluate_every=1000)
    train(recipe, training, options, tmp_path / "run")
    assert recipe.loss(batch, torch.Generator().manual_seed(0), 0.0).item() < 0.8 * loss_before
    assert before < recipe.agreement() <= 1


def test_the_whole_target_agrees_with_itself(tmp_path: Path) -> None:
    whole = make_recipe(tmp_path, DraftModelOptions(num_layers=2, intermediate_size=48))
    assert whole.agreement() > 0.95  # its features are stored in float16: near-ties may fall either way
    assert whole.evaluate().keys() == {"score"}


@pytest.mark.parametrize("position", [0, 1, 2])
def test_no_loss_flows_from_prompt_positions(position: int, tmp_path: Path) -> None:
    recipe, data = make_recipe(tmp_path), tiny_parts(tmp_path)[0]
    batch = data.batch(data.batch_indices(64, 0)[0])
    base = recipe.loss(batch, torch.Generator().manual_seed(0), 0.0)
    batch.features[:, position] += 1.0  # what the target wants there is not asked
    assert torch.equal(recipe.loss(batch, torch.Generator().manual_seed(0), 0.0), base)
    batch.features[:, 3] += 1.0  # position start - 1 predicts the first answer token
    assert not torch.equal(recipe.loss(batch, torch.Generator().manual_seed(0), 0.0), base)
