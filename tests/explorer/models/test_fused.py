"""Fused modules against transformers' own, for the families they know; unknown ones stay untouched."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from explorer.models import fused
from explorer.models.attention import register_tree_attention
from explorer.models.fused import fuse, probe_decoder
from kernels.tree_attention.naive import tree_attention

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}


def decoder_of(config: Any) -> Any:
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=register_tree_attention("naive")).eval()
    for parameter in model.parameters():  # norms and biases start at ones and zeros, which would hide a mistake
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model.get_decoder()


def hidden(decoder: Any) -> torch.Tensor:
    with torch.inference_mode():
        return decoder(input_ids=torch.arange(20)[None], use_cache=False).last_hidden_state


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True, head_dim=16),
        MistralConfig(**SIZES, sliding_window=None),
        Qwen2Config(**SIZES),
    ],
    ids=["llama", "llama-bias", "mistral", "qwen2"],
)
def test_the_decoder_computes_the_same(config: Any) -> None:
    decoder = decoder_of(config)
    expected = hidden(decoder)
    num_fused = fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    assert num_fused == 2 * 4 + 1  # two norms, attention and MLP a layer, and the final norm
    torch.testing.assert_close(hidden(decoder), expected, atol=2e-5, rtol=2e-5)


def test_attention_that_does_more_is_left_alone() -> None:
    decoder = decoder_of(Qwen3Config(**SIZES, head_dim=8))
    kinds = [type(module).__name__ for module in decoder.modules()]
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    assert [type(module).__name__ for module in decoder.modules()] == kinds


def test_another_activation_is_left_alone() -> None:
    decoder = decoder_of(LlamaConfig(**SIZES, hidden_act="gelu"))
    expected = hidden(decoder)
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    torch.testing.assert_close(hidden(decoder), expected, atol=2e-5, rtol=2e-5)
    assert any(type(module).__name__ == "LlamaMLP" for module in decoder.modules())


def test_a_decoder_that_differs_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "_TOLERANCE", -1.0)
    decoder = decoder_of(LlamaConfig(**SIZES))
    expected = hidden(decoder)
    assert fuse(decoder, tree_attention, partial(probe_decoder, decoder)) == 0
    assert torch.equal(hidden(decoder), expected)
