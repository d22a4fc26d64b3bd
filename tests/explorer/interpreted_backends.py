"""Methods on a target whose attention and cache are Triton kernels. Run by test_backends.py, in the interpreter."""

from __future__ import annotations

import pytest
import torch

from explorer.config import CACHES
from explorer.engine import DecodeOptions, Decoding
from explorer.graphed import GraphedTarget
from explorer.kernel_cost import attention_times
from explorer.methods.registry import METHODS
from explorer.models.graphs import call_again
from explorer.target import Target
from explorer.theory import ModelShape
from explorer.tree import DraftTree
from tests.support.tiny import greedy, tiny_drafter, tiny_model, tiny_target

PROMPT = [3, 1, 4, 1, 0]
NUM_TOKENS = 8
VOCAB = 5  # so that something is accepted, and rows must move
# Llama runs through our fused modules, Gemma through transformers' own and its attention interface.
TARGETS = {
    kind: [tiny_target(architecture=kind, backend=backend, vocab_size=VOCAB) for backend in ("naive", "triton")]
    for kind in ("llama", "gemma")
}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize(
    ("name", "kind"),
    [("autoregressive", "llama"), ("medusa", "gemma"), ("eagle2", "llama"), ("draft_model", "llama")],
)
def test_output_equals_plain_greedy_decoding(name: str, kind: str, cache: str) -> None:
    naive, target = TARGETS[kind]
    method = METHODS[name](target, tiny_drafter(name, target), METHODS[name].Settings())
    decoding = Decoding(target, method, PROMPT, DecodeOptions(NUM_TOKENS, cache=cache))
    decoding.prefill()
    steps = list(decoding.steps())
    assert decoding.output == greedy(naive, PROMPT, NUM_TOKENS)
    assert name == "autoregressive" or len(steps) < NUM_TOKENS - 1, "nothing was ever accepted"


@pytest.mark.parametrize(("name", "cache"), [("autoregressive", "rows"), ("eagle2", "slots")])
def test_fixed_passes_on_the_kernels_equal_plain_greedy_decoding(
    name: str, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, but each pass is computed again instead of replayed."""
    monkeypatch.setattr("explorer.graphed.SIZES", (1, 8))  # the interpreter is slow
    model = tiny_model(backend="triton", vocab_size=VOCAB)
    target = GraphedTarget(model, None, "tiny", frozenset(), "triton", capture=call_again)
    settings = METHODS[name].Settings(8, 1, 3) if name == "eagle2" else METHODS[name].Settings()
    decoding = Decoding(
        target,
        METHODS[name](target, tiny_drafter(name, target), settings),
        PROMPT,
        DecodeOptions(NUM_TOKENS, cache=cache),
    )
    decoding.prefill()
    list(decoding.steps())
    assert decoding.output == greedy(TARGETS["llama"][0], PROMPT, NUM_TOKENS)
    assert target.execution == "graphed"


def passes(target: Target, cache: str, tree: DraftTree) -> list[torch.Tensor]:
    """Logits of a tree pass, of the one after its commit, and what the cache then holds."""
    target.start(0, cache)
    target.prefill(PROMPT)
    logits = [target.forward(tree).logits]
    assert target.last_mask is not None
    assert torch.equal(target.last_mask[:, len(PROMPT) :], tree.tree_mask)
    assert target.last_mask[:, : len(PROMPT)].all()
    target.commit([0, 2, 70])
    return [*logits, target.forward(tree).logits, target.cache.committed()]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("kind", TARGETS)
def test_a_tree_of_more_rows_than_a_word_has_bits(kind: str, cache: str) -> None:
    tree = DraftTree.from_lists([row % VOCAB for row in range(71)], [-1, 0, 0, *range(1, 68), 2])
    expected, got = (passes(target, cache, tree) for target in TARGETS[kind])
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


def test_the_kernel_is_measured_beside_the_reference() -> None:
    shape = ModelShape(num_weights=1, num_bytes=4, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16)
    found, missing = attention_times(shape, torch.float32, torch.device("cpu"), repeats=1, num_rows=5)
    assert [item.name for item in found][-2:] == ["triton", "triton, through slots"]
    assert all(item.difference < 1e-4 for item in found)
    assert missing == ""
