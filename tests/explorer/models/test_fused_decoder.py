"""The plain loop against transformers' own, through prompt, tree and single-row passes, commits between them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from explorer.models import fused_decoder
from explorer.models.attention import LAYOUT, register_tree_attention
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.fused import fuse, probe_decoder
from explorer.models.fused_decoder import FusedDecoder, fuse_decoder
from explorer.models.slot_cache import SlotCache
from kernels.tree_attention.naive import tree_attention
from tests.explorer.models.test_fused import SIZES

SHAPE = CacheShape(num_layers=2, num_kv_heads=2, head_dim=8)
TREE = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]], dtype=torch.bool)


def decoder_of(config: Any) -> Any:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=register_tree_attention("naive")).eval()
    for parameter in model.parameters():  # norms and biases start at ones and zeros, which would hide a mistake
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model.get_decoder()


@torch.inference_mode()
def passes(decoder: Any, cache: TreeCache) -> torch.Tensor:
    """Hidden states of a prompt, a tree whose second branch is kept, a single row, and a long second prompt."""
    found = []
    for num_rows, tree, kept in ((7, None, range(7)), (4, TREE, (0, 2, 3)), (1, None, (0,)), (70, None, range(70))):
        cache.reserve(num_rows)
        depths = torch.arange(num_rows) if tree is None else tree.sum(1) - 1
        mask = None if tree is None else functional.pad(tree, (cache.length, 0), value=True)[None, None]
        output = decoder(
            input_ids=torch.arange(num_rows)[None] % 50,
            position_ids=(cache.length + depths)[None],
            attention_mask=mask,
            cache=cache,
            use_cache=True,
            **{LAYOUT: cache.layout},
        )
        found.append(output.last_hidden_state[0])
        cache.commit(tuple(kept))
    return torch.cat(found)


def new_cache(kind: type[TreeCache] = TreeCache) -> TreeCache:
    return kind(SHAPE, 90, torch.float32, torch.device("cpu"))


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True),
        MistralConfig(**SIZES, sliding_window=None),
        Qwen2Config(**SIZES),
    ],
    ids=["llama", "llama-bias", "mistral", "qwen2"],
)
def test_the_loop_computes_the_same(config: Any) -> None:
    decoder = decoder_of(config)
    expected = passes(decoder, new_cache())
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    loop = fuse_decoder(decoder, tree_attention, SHAPE)
    assert isinstance(loop, FusedDecoder)
    cache = new_cache()
    torch.testing.assert_close(passes(loop, cache), expected, atol=5e-5, rtol=5e-5)
    other = new_cache()
    passes(decoder, other)
    torch.testing.assert_close(cache.committed(), other.committed(), atol=5e-5, rtol=5e-5)


def test_a_cache_of_slots_is_read_through_the_kernel() -> None:
    decoder = decoder_of(LlamaConfig(**SIZES))
    expected = passes(decoder, new_cache())
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    got = passes(fuse_decoder(decoder, tree_attention, SHAPE), new_cache(SlotCache))
    torch.testing.assert_close(got, expected, atol=5e-5, rtol=5e-5)


def test_an_unknown_decoder_stays() -> None:
    decoder = decoder_of(Qwen3Config(**SIZES, head_dim=8))
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    assert fuse_decoder(decoder, tree_attention, SHAPE) is decoder


def test_a_decoder_whose_modules_are_not_fused_stays() -> None:
    decoder = decoder_of(LlamaConfig(**SIZES))
    assert fuse_decoder(decoder, tree_attention, SHAPE) is decoder


def test_a_loop_that_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = decoder_of(LlamaConfig(**SIZES))
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    monkeypatch.setattr(fused_decoder, "_rotate", lambda heads, cos, sin: heads * cos + heads * sin)
    assert fuse_decoder(decoder, tree_attention, SHAPE) is decoder
