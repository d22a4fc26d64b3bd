"""EAGLE's layer: the cache changes nothing, masks mean what they say, keys and draft ids are the published ones."""

from __future__ import annotations

import pytest
import torch

from explorer.models.eagle_layer import DraftCache, EagleConfig, EagleDrafter

CONFIG = EagleConfig(hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, vocab_size=61)


def drafter(config: EagleConfig = CONFIG) -> EagleDrafter:
    torch.manual_seed(0)
    made = EagleDrafter(config).eval().requires_grad_(False)
    made.bind(torch.randn(61, 32), torch.randn(61, 32))
    return made


def pairs(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 61, (count,), generator=generator)
    return tokens, torch.randn(count, 32, generator=generator), torch.arange(count)


def test_keys_are_the_published_ones() -> None:
    layer = {f"self_attn.{name}_proj.weight" for name in "qkvo"} | {
        f"mlp.{n}_proj.weight" for n in ("gate", "up", "down")
    }
    expected = {f"layers.0.{name}" for name in layer | {"post_attention_layernorm.weight"}}
    assert set(drafter().state_dict()) == expected | {"fc.weight", "fc.bias"}
    two = EagleConfig(32, 48, 4, 2, 61, num_layers=2, fc_bias=False, qkv_bias=True, draft_vocab_size=10)
    keys = set(EagleDrafter(two).state_dict())
    assert "layers.1.input_layernorm.weight" in keys
    assert "layers.0.input_layernorm.weight" not in keys
    assert "fc.bias" not in keys
    assert "layers.0.self_attn.q_proj.bias" in keys
    assert "layers.0.self_attn.o_proj.bias" not in keys
    assert "d2t" in keys


@pytest.mark.parametrize("splits", [(7,), (3, 4), (1, 1, 5), (5, 1, 1)])
def test_incremental_passes_equal_one_full_pass(splits: tuple[int, ...]) -> None:
    made, (tokens, features, positions) = drafter(), pairs(7)
    full = made(tokens, features, positions, None, None)
    cache, parts = DraftCache(), []
    for piece in torch.arange(7).split(list(splits)):
        parts.append(made(tokens[piece], features[piece], positions[piece], None, cache))
    assert cache.length == 7
    assert torch.allclose(torch.cat(parts), full, atol=1e-5)


def test_truncating_forgets_a_finished_draft() -> None:
    made, (tokens, features, positions) = drafter(), pairs(7)
    full = made(tokens, features, positions, None, None)
    cache = DraftCache()
    made(tokens[:4], features[:4], positions[:4], None, cache)
    made(tokens[:3], -features[:3], positions[4:], None, cache)
    cache.truncate(4)
    assert cache.length == 4
    again = made(tokens[4:], features[4:], positions[4:], None, cache)
    assert torch.allclose(again, full[4:], atol=1e-5)
    with pytest.raises(ValueError, match="cannot truncate"):
        cache.truncate(8)


def test_a_tree_mask_hides_siblings() -> None:
    made, (tokens, features, positions) = drafter(), pairs(5)
    cache = DraftCache()
    made(tokens[:3], features[:3], positions[:3], None, cache)
    # Two siblings at the same position: each sees the prefix and itself.
    mask = torch.tensor([[True, True, True, True, False], [True, True, True, False, True]])
    both = made(tokens[3:], features[3:], torch.tensor([3, 3]), mask, cache)
    for row in range(2):
        cache.truncate(3)
        alone = made(tokens[3 + row : 4 + row], features[3 + row : 4 + row], torch.tensor([3]), None, cache)
        assert torch.allclose(both[row], alone[0], atol=1e-5)


def test_a_batch_equals_its_rows() -> None:
    made, (tokens, features, positions) = drafter(), pairs(6)
    batch = made.predict(tokens.view(2, 3), features.view(2, 3, 32), positions[:3].expand(2, 3))
    alone = made(tokens[3:], features[3:], positions[:3], None, None)
    assert torch.allclose(batch[1], alone, atol=1e-5)


def test_reduced_draft_vocabulary_maps_to_target_ids() -> None:
    made = EagleDrafter(EagleConfig(32, 48, 4, 2, 61, draft_vocab_size=4)).requires_grad_(False)
    made.d2t.copy_(torch.tensor([5, 8, 30, 57]) - torch.arange(4))
    lm_head = torch.randn(61, 32)
    made.bind(torch.randn(61, 32), lm_head)
    hidden = torch.randn(3, 32)
    assert made.to_target(torch.tensor([[0, 3]])).tolist() == [[5, 57]]
    assert torch.allclose(made.logits(hidden), (hidden @ lm_head.T)[:, [5, 8, 30, 57]], atol=1e-5)
    assert made.num_draft_tokens == 4
    assert made.to_draft(30) == 2
    assert made.to_draft(31) is None


def test_full_draft_vocabulary_borrows_the_targets_matrices() -> None:
    made, embedding, lm_head = drafter(), torch.randn(61, 32), torch.randn(61, 32)
    made.bind(embedding, lm_head)
    assert made.draft_head.data_ptr() == lm_head.data_ptr()
    assert made.embedding.data_ptr() == embedding.data_ptr()
    assert made.to_target(torch.tensor([7])).tolist() == [7]
    assert made.to_draft(7) == 7
