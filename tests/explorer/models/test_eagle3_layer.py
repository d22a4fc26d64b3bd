"""EAGLE-3's layer: the published keys, a cache that changes nothing, masks that mean what they say, own head and norm.

That it computes what its authors' layer does is tested against a twin, in the test of its files.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.models.eagle_layer import DraftCache
from explorer.models.fused import fuse
from explorer.models.packed import is_packable, pack_linears
from kernels.tree_attention.naive import tree_attention

CONFIG = Eagle3Config(32, 48, 4, 2, 61, draft_vocab_size=20, feature_layers=(1, 2, 3))


def drafter(config: Eagle3Config = CONFIG) -> Eagle3Drafter:
    torch.manual_seed(0)
    made = Eagle3Drafter(config).eval().requires_grad_(False)
    made.bind(torch.randn(61, 32))
    return made


def pairs(made: Eagle3Drafter, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 61, (count,), generator=generator)
    features = torch.randn(count, made.config.feature_size, generator=generator)
    return tokens, made.combine(features), torch.arange(count)


def test_keys_and_shapes_are_the_published_ones() -> None:
    shapes = {name: tuple(tensor.shape) for name, tensor in drafter().state_dict().items()}
    assert shapes == {
        "midlayer.self_attn.q_proj.weight": (32, 64),
        "midlayer.self_attn.k_proj.weight": (16, 64),
        "midlayer.self_attn.v_proj.weight": (16, 64),
        "midlayer.self_attn.o_proj.weight": (32, 32),
        "midlayer.mlp.gate_proj.weight": (48, 32),
        "midlayer.mlp.up_proj.weight": (48, 32),
        "midlayer.mlp.down_proj.weight": (32, 48),
        "midlayer.hidden_norm.weight": (32,),
        "midlayer.input_layernorm.weight": (32,),
        "midlayer.post_attention_layernorm.weight": (32,),
        "fc.weight": (32, 96),
        "norm.weight": (32,),
        "lm_head.weight": (20, 32),
        "d2t": (20,),
    }
    full = Eagle3Config(32, 48, 4, 2, 61, head_dim=12, qkv_bias=True, feature_layers=(0,), target_hidden_size=24)
    keys = {name: tuple(tensor.shape) for name, tensor in Eagle3Drafter(full).state_dict().items()}
    assert keys["fc.weight"] == (32, 24)
    assert keys["midlayer.self_attn.q_proj.weight"] == (48, 64)
    assert keys["midlayer.self_attn.k_proj.bias"] == (24,)
    assert keys["lm_head.weight"] == (61, 32)
    assert not {"d2t", "midlayer.self_attn.o_proj.bias", "fc.bias"} & keys.keys()


@pytest.mark.parametrize("splits", [(7,), (3, 4), (1, 1, 5)])
def test_incremental_passes_equal_one_full_pass(splits: tuple[int, ...]) -> None:
    made = drafter()
    tokens, features, positions = pairs(made, 7)
    full = made(tokens, features, positions, None, None)
    cache, parts = DraftCache(), []
    for piece in torch.arange(7).split(list(splits)):
        parts.append(made(tokens[piece], features[piece], positions[piece], None, cache))
    assert cache.length == 7
    assert torch.allclose(torch.cat(parts), full, atol=1e-5)


def test_a_tree_mask_hides_siblings() -> None:
    made, cache = drafter(), DraftCache()
    tokens, features, positions = pairs(made, 5)
    made(tokens[:3], features[:3], positions[:3], None, cache)
    mask = torch.tensor([[True, True, True, True, False], [True, True, True, False, True]])
    both = made(tokens[3:], features[3:], torch.tensor([3, 3]), mask, cache)
    for row in range(2):
        cache.truncate(3)
        alone = made(tokens[3 + row : 4 + row], features[3 + row : 4 + row], torch.tensor([3]), None, cache)
        assert torch.allclose(both[row], alone[0], atol=1e-5)


def test_what_is_recycled_is_not_what_the_head_reads() -> None:
    """The next step continues the layer's bare output; only the head sees it normed."""
    made = drafter()
    made.norm.weight.mul_(3)
    tokens, features, positions = pairs(made, 4)
    hidden = made(tokens, features, positions, None, None)
    assert torch.allclose(made.logits(hidden), made.lm_head(made.norm(hidden)))
    made.norm.weight.mul_(5)
    assert torch.equal(made(tokens, features, positions, None, None), hidden)


def test_first_guesses_are_target_ids() -> None:
    made = drafter()
    made.d2t.copy_(3 * torch.arange(20) + 1 - torch.arange(20))
    tokens = torch.tensor([5, 6, 7, 8])
    guesses = made.guess_next(tokens, torch.randn(4, 96), None)
    assert guesses.shape == (3,)
    assert set((guesses % 3).tolist()) == {1}


def test_fused_modules_compute_the_same() -> None:
    made = drafter()
    tokens, features, positions = pairs(made, 6)
    expected = made.logits(made(tokens, features, positions, None, None))
    assert fuse(made, tree_attention, made.probe) == 6  # attention, MLP and four norms
    assert torch.allclose(made.logits(made(tokens, features, positions, None, None)), expected, atol=1e-4)


@pytest.mark.parametrize("config", [CONFIG, replace(CONFIG, norm_before_residual=True)], ids=["bare", "normed"])
@torch.inference_mode()
def test_a_row_of_operators_computes_the_same_behind_a_cache(config: Eagle3Config) -> None:
    made = drafter(config)
    tokens, features, positions = pairs(made, 7)
    expected = made(tokens, features, positions, None, None)
    fuse(made, tree_attention, made.probe)
    pack_linears(made)
    made.flatten()
    assert (made.flat is not None) == is_packable(torch.nn.Linear(4, 4))
    before = features.clone()
    torch.testing.assert_close(made(tokens, features, positions, None, None), expected, atol=2e-5, rtol=2e-5)
    cache = DraftCache()
    parts = [made(tokens[i], features[i], positions[i], None, cache) for i in torch.arange(7).split([3, 1, 3])]
    torch.testing.assert_close(torch.cat(parts), expected, atol=2e-5, rtol=2e-5)
    assert torch.equal(features, before), "its inputs are left as they are"
