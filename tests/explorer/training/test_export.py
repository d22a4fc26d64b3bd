"""Drafter folders are read back by the strict loaders, float16, without the target's matrices."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from explorer.checkpoints.draft_model import load_draft_model
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import load_eagle3
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.smollm2 import LABEL
from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.models.eagle_layer import EagleConfig, EagleDrafter
from explorer.models.medusa_heads import MedusaHeads
from explorer.training.draft_model import DraftModelOptions, FirstLayers
from explorer.training.export import CardFacts, save_draft_model, save_eagle, save_eagle3, save_medusa, write_card
from explorer.training.plan import load_weights
from tests.support.tiny import tiny_model, tiny_target


def test_medusa_round_trip(tmp_path: Path) -> None:
    torch.manual_seed(0)
    heads = MedusaHeads(3, 1, 32, 61)
    tokens = torch.tensor([8, 60, 3])
    save_medusa(heads, tmp_path, "tiny", tokens)
    stored = load_file(tmp_path / "medusa_lm_head.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    loaded = load_medusa(str(tmp_path), tiny_target())
    hidden = torch.randn(2, 32)
    lm_head = tiny_target().lm_head
    drafted = loaded.module(hidden, loaded.module.head_layer(lm_head))
    assert torch.allclose(drafted, heads(hidden, lm_head)[..., [3, 8, 60]], atol=2e-2)
    assert loaded.module.to_target(torch.arange(3)).tolist() == [3, 8, 60]


def test_eagle_round_trip(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = EagleConfig(32, 48, 4, 2, 61, rope_theta=5e4, fc_bias=False, draft_vocab_size=9)
    drafter = EagleDrafter(config)
    drafter.d2t.copy_(torch.arange(9) * 5)
    save_eagle(drafter, tmp_path, "tiny")
    stored = load_file(tmp_path / "model.safetensors")
    assert not [name for name in stored if "embed" in name or "head" in name]
    loaded = load_eagle(str(tmp_path), tiny_target()).module
    assert loaded.config.rope_theta == 5e4
    assert loaded.to_target(torch.arange(9)).tolist() == [6 * i for i in range(9)]
    assert torch.allclose(loaded.fc.weight, drafter.fc.weight, atol=1e-3)


def test_eagle3_round_trip(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = Eagle3Config(32, 48, 4, 2, 61, rope_theta=5e4, head_dim=12, draft_vocab_size=9, feature_layers=(1, 0))
    drafter = Eagle3Drafter(config)
    drafter.d2t.copy_(torch.arange(9) * 5)
    save_eagle3(drafter, tmp_path, "tiny")
    stored = load_file(tmp_path / "model.safetensors")
    assert stored["t2d"].nonzero().flatten().tolist() == [6 * i for i in range(9)]
    assert "embed_tokens.weight" not in stored
    loaded = load_eagle3(str(tmp_path), tiny_target())
    assert loaded.module.config == config
    assert loaded.feature_layers == (1, 0)
    for name, tensor in drafter.state_dict().items():
        assert torch.allclose(loaded.module.state_dict()[name].float(), tensor.float(), atol=1e-3), name


def test_an_eagle3_head_that_was_not_trained_stays_with_the_target(tmp_path: Path) -> None:
    target = tiny_target()
    drafter = Eagle3Drafter(Eagle3Config(32, 48, 4, 2, 61, draft_vocab_size=9, feature_layers=(1, 0)))
    drafter.d2t.copy_(torch.arange(9) * 5)
    save_eagle3(drafter, tmp_path, "tiny", has_own_head=False)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    loaded = load_eagle3(str(tmp_path), target).module
    assert torch.equal(loaded.lm_head.weight, target.lm_head.weight[6 * torch.arange(9)])
    again = Eagle3Drafter(drafter.config)
    again.d2t.copy_(drafter.d2t)
    load_weights(again, tmp_path)
    assert torch.allclose(again.fc.weight, drafter.fc.weight, atol=1e-3)


def test_draft_model_round_trip(tmp_path: Path) -> None:
    network = FirstLayers(tiny_model().get_decoder(), DraftModelOptions(num_layers=1, intermediate_size=24))
    save_draft_model(network, tmp_path, "tiny")
    stored = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    assert not [name for name in stored if "embed" in name or "lm_head" in name]
    target, tokens = tiny_target(), torch.tensor([[3, 1, 4, 1, 5]])
    loaded = load_draft_model(str(tmp_path), target)
    logits = loaded.model(tokens).logits
    assert loaded.model.config.num_hidden_layers == 1
    assert torch.allclose(logits, target.lm_head(network(tokens)), atol=2e-2)


def test_the_card_tells_everything(tmp_path: Path) -> None:
    history = [{"step": 10, "loss": 1.5, "score": 0.4}]
    facts = CardFacts("Heads", LABEL, "Own text.", "train medusa", {"epochs": 3}, {"head 0": "0.4"}, history)
    write_card(tmp_path, facts)
    card = (tmp_path / "README.md").read_text()
    assert card.startswith(f"---\nlicense: apache-2.0\nbase_model: {LABEL}\n---\n") and "Licence: Apache-2.0." in card
    for piece in ("Own text.", "`train medusa`", "| epochs | 3 |", "| head 0 | 0.4 |", "| 10 | 1.5 | 0.4 |"):
        assert piece in card


def test_the_card_of_another_targets_drafter_gives_no_licence(tmp_path: Path) -> None:
    write_card(tmp_path, CardFacts("Heads", "my-model", "Own text.", "train medusa", {}, {}, []))
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("---\nbase_model: my-model\n---\n") and "icen" not in card
