"""The drafter's cache: whatever was drafted and accepted, it holds pairs of true features and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from explorer.methods.eagle2 import Eagle2
from explorer.methods.eagle_base import EagleMethod
from explorer.methods.registry import METHODS
from tests.support.goldens import replay
from tests.support.tiny import ARCHITECTURES, VOCAB, tiny_drafter, tiny_target

NAMES = [name for name, method in METHODS.items() if issubclass(method, EagleMethod)]


def build(name: str, seed: int = 0, **changes: Any) -> EagleMethod:
    target, kind = tiny_target(**changes), METHODS[name]
    small = {"total_tokens": 12, "depth": 2, "top_k": 3} if issubclass(kind, Eagle2) else {}
    method = kind(target, tiny_drafter(name, target, seed), kind.Settings(**small))
    assert isinstance(method, EagleMethod)
    return method


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(
    seed=st.integers(0, 9),
    vocab_size=st.sampled_from([3, VOCAB]),
    architecture=st.sampled_from(list(ARCHITECTURES)),
    prompt=st.lists(st.integers(0, 2), min_size=1, max_size=6),
)
def test_the_drafters_cache_equals_a_fresh_pass_over_true_features(
    name: str, seed: int, vocab_size: int, architecture: str, prompt: list[int]
) -> None:
    """Of three tokens every draft has the right ones; of many, hardly any: both must leave true pairs and no others."""
    changes: dict[str, Any] = {"vocab_size": vocab_size, "architecture": architecture}
    method, fresh, tokens = build(name, seed, **changes), build(name, seed, **changes), list(prompt)
    num_accepted = 0
    for _, _, verdict in replay(method.target, method, tokens, 5):
        assert method._cache.length == method.target.length  # pairs of every committed token, the last with the root
        fresh.target.start(0, layers=fresh.feature_layers)
        plain = fresh.target.prefill(tokens)
        root = int(plain.logits.argmax())
        with torch.inference_mode():
            fresh._cache.truncate(0)
            fresh._extend(torch.tensor([*tokens[1:], root]), fresh._true_features(plain))
        for ours, theirs in zip(method._cache._layers, fresh._cache._layers, strict=True):
            torch.testing.assert_close(ours[0], theirs[0], atol=1e-4, rtol=0)
            torch.testing.assert_close(ours[1], theirs[1], atol=1e-4, rtol=0)
        tokens = [*tokens, root, *verdict.accepted_tokens]
        num_accepted += len(verdict.accepted_tokens)
    assert num_accepted or vocab_size == VOCAB


def test_a_level_sees_the_prefix_and_its_own_ancestors_only() -> None:
    """What a draft predicts does not depend on its neighbours: one beam of two equals two beams of one."""
    method = build("eagle2")
    assert isinstance(method, Eagle2)
    features = tiny_target().prefill([1, 2, 3]).hidden
    with torch.inference_mode():
        method._extend(torch.tensor([2, 3, 7]), features)
        both = method._forward_level(torch.tensor([5, 6]), features[1:], torch.eye(2, dtype=torch.bool), 3)
        for i, token in enumerate((5, 6)):
            method._cache.truncate(3)
            alone = method._forward_level(torch.tensor([token]), features[1 + i : 2 + i], torch.ones(1, 1).bool(), 3)
            torch.testing.assert_close(both[i], alone[0], atol=1e-5, rtol=0)
