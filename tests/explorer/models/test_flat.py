"""The loop over fused layers against the modules it stands for, alone and behind a cache."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from transformers import GemmaConfig, LlamaConfig, MistralConfig, Qwen2Config

from explorer.models import flat
from explorer.models.attention import CACHE
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.flat import FlatDecoder, flatten
from explorer.models.fused import fuse, probe_decoder
from explorer.models.layer_inputs import layer_inputs
from explorer.models.packed import is_packable, pack_linears
from explorer.models.perturbation import perturbed
from kernels.tree_attention.inputs import IN_ORDER
from kernels.tree_attention.naive import tree_attention, tree_mask
from tests.explorer.models.test_fused import SIZES, decoder_of, hidden

KNOWN = {
    "llama": LlamaConfig(**SIZES),
    "llama-bias": LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True, head_dim=16),
    "mistral": MistralConfig(**SIZES, sliding_window=None),
    "qwen2": Qwen2Config(**SIZES),
}


def fused_decoder(config: Any) -> Any:
    decoder = decoder_of(config)
    fuse(decoder, tree_attention, partial(probe_decoder, decoder))
    pack_linears(decoder)
    return decoder


def flat_of(decoder: Any) -> FlatDecoder:
    found = flatten(decoder)
    if found is None:
        assert not is_packable(torch.nn.Linear(4, 4)), "products can be packed here, so the loop must be there"
        pytest.skip("this PyTorch cannot pack products, which the loop is made of")
    return found


def flat_hidden(found: FlatDecoder, num_tokens: int = 20) -> torch.Tensor:
    ids = torch.arange(num_tokens)
    with torch.inference_mode():
        return found(ids[None], ids, None, None, IN_ORDER)


@pytest.mark.parametrize("kind", KNOWN)
def test_it_computes_what_the_modules_compute(kind: str) -> None:
    decoder = fused_decoder(KNOWN[kind])
    torch.testing.assert_close(flat_hidden(flat_of(decoder)), hidden(decoder), atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("kind", KNOWN)
@torch.inference_mode()
def test_what_enters_its_layers_is_what_enters_the_modules(kind: str) -> None:
    decoder = fused_decoder(KNOWN[kind])
    found, ids = flat_of(decoder), torch.arange(20)
    layers = (1, 0)
    ours, theirs = dict.fromkeys(layers, torch.empty(0)), dict.fromkeys(layers, torch.empty(0))
    with layer_inputs(decoder, theirs):
        hidden(decoder)
    plain = found(ids[None], ids, None, None, IN_ORDER)
    assert torch.equal(found(ids[None], ids, None, None, IN_ORDER, ours), plain)
    for layer in layers:
        torch.testing.assert_close(ours[layer], theirs[layer], atol=2e-5, rtol=2e-5)


@torch.inference_mode()
def test_a_tree_behind_a_cache_equals_the_modules() -> None:
    """Both routes write the same keys and read the same mask."""
    decoder = fused_decoder(KNOWN["llama"])
    found, outputs = flat_of(decoder), []
    shape = CacheShape(SIZES["num_hidden_layers"], SIZES["num_key_value_heads"], 8)
    tokens, positions = torch.tensor([7, 8, 9]), torch.tensor([5, 6, 6])
    mask = tree_mask(torch.tensor([[1, 0, 0], [1, 1, 0], [1, 0, 1]], dtype=torch.bool), 5)
    for is_flat in (True, False):
        cache = TreeCache(shape, 16, torch.float32, torch.device("cpu"))
        cache.reserve(5)
        found(torch.arange(5)[None], torch.arange(5), None, cache.write, IN_ORDER)
        cache.commit(range(5))
        cache.reserve(3)
        if is_flat:
            output = found(tokens[None], positions, mask, cache.write, IN_ORDER)
        else:
            options = {"attention_mask": mask[None, None], CACHE: cache, "use_cache": True}
            output = decoder(input_ids=tokens[None], position_ids=positions[None], **options).last_hidden_state
        cache.commit([0, 2])
        outputs.append((output, cache.committed()))
    for ours, theirs in zip(*outputs, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=2e-5)


def test_sequences_of_a_batch_do_not_mix() -> None:
    found, positions = flat_of(fused_decoder(KNOWN["llama"])), torch.arange(6)
    batch = torch.stack([torch.arange(6), torch.arange(6).flip(0)])
    with torch.inference_mode():
        together = found(batch, positions, None, None, IN_ORDER)
        alone = [found(row[None], positions, None, None, IN_ORDER)[0] for row in batch]
    torch.testing.assert_close(together, torch.stack(alone), atol=2e-5, rtol=2e-5)


def test_noise_on_the_decoder_reaches_the_loop() -> None:
    decoder = fused_decoder(KNOWN["llama"])
    found = flat_of(decoder)
    own = flat_hidden(found)
    with perturbed(decoder, 0.5):
        noisy = flat_hidden(found)
        torch.testing.assert_close(noisy, hidden(decoder), atol=2e-5, rtol=2e-5)
    assert float((noisy - own).abs().max()) > 0.01
    assert torch.equal(flat_hidden(found), own)


def test_what_it_does_not_know_keeps_its_modules() -> None:
    assert flatten(decoder_of(KNOWN["llama"])) is None, "nothing was fused"
    assert flatten(fused_decoder(LlamaConfig(**SIZES, hidden_act="gelu"))) is None
    assert flatten(fused_decoder(GemmaConfig(**SIZES, head_dim=8))) is None


def test_a_loop_that_differs_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = fused_decoder(KNOWN["llama"])
    flat_of(decoder)
    monkeypatch.setattr(flat, "_TOLERANCE", -1.0)
    assert flatten(decoder) is None
