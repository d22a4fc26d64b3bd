"""Fixed passes that are recorded and replayed give what ordinary passes give, or are not used and say why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from explorer.engine import DecodeOptions, Decoding
from explorer.graphed import SIZES, GraphedTarget
from explorer.methods.registry import METHODS
from explorer.tree import DraftTree, binary_parents
from tests.support.captured import recorded
from tests.support.tiny import greedy, tiny_drafter, tiny_model, tiny_target

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


def graphed(capture: Callable[..., Any] = recorded, **changes: Any) -> GraphedTarget:
    return GraphedTarget(tiny_model(**changes), None, "tiny", frozenset(), "naive", capture=capture)


@pytest.fixture(params=["packed", "modules"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> GraphedTarget:
    """On packed layers as on a CPU, and on transformers' own modules as on a GPU."""
    if request.param == "modules":
        monkeypatch.setattr("explorer.target.is_packable", lambda _layer: False)
    return graphed()


@pytest.mark.parametrize("cache", ["rows", "slots"])
@pytest.mark.parametrize("name", ["autoregressive", "medusa", "eagle2", "eagle3", "lookahead"])
def test_greedy_output_equals_plain_decoding(target: GraphedTarget, name: str, cache: str) -> None:
    expected = greedy(tiny_target(), PROMPT, 30)
    kind = METHODS[name]
    for _ in range(2):  # the second run finds cache and graphs of the first
        method = kind(target, tiny_drafter(name, target), kind.Settings())
        decoding = Decoding(target, method, PROMPT, DecodeOptions(30, cache=cache))
        decoding.prefill()
        list(decoding.steps())
        assert decoding.output == expected
    assert target.execution == "graphed", target.why_eager


def test_a_draft_model_is_captured_too(target: GraphedTarget) -> None:
    """It reads its own guesses one by one and takes failed ones back."""
    kind = METHODS["draft_model"]
    drafter = GraphedTarget(tiny_model(1, num_hidden_layers=1), None, "d", frozenset(), "naive", capture=recorded)
    decoding = Decoding(target, kind(target, drafter, kind.Settings()), PROMPT, DecodeOptions(30))
    decoding.prefill()
    list(decoding.steps())
    assert decoding.output == greedy(tiny_target(), PROMPT, 30)
    assert drafter.execution == target.execution == "graphed"


@pytest.mark.parametrize("num_rows", [1, 2, 4, 5, 60, 65, 128, 129])
def test_a_pass_equals_the_ordinary_one_and_is_the_callers_own(target: GraphedTarget, num_rows: int) -> None:
    plain = tiny_target()
    tree = DraftTree.from_lists([row % 7 for row in range(num_rows)], binary_parents(num_rows))
    for model in (target, plain):
        model.start(8)
        model.prefill(PROMPT)
    first = target.forward(tree)
    kept = first.logits.clone()
    again, expected = target.forward(tree), plain.forward(tree)
    assert again.logits.shape == (num_rows, plain.vocab_size)
    torch.testing.assert_close(again.logits, expected.logits, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(again.hidden, expected.hidden, atol=1e-4, rtol=1e-4)
    mask, seen = target.last_mask, plain.last_mask
    assert (mask is None and seen is None) or (mask is not None and seen is not None and torch.equal(mask, seen))
    target.commit([0])
    target.forward(DraftTree.from_lists([5] * num_rows, binary_parents(num_rows)))
    assert torch.equal(first.logits, kept)


def test_a_cache_that_outgrows_its_room_is_captured_anew(target: GraphedTarget) -> None:
    target.start(1)
    target.prefill([0])
    target.forward(DraftTree.root_only(0))
    before = target.cache.storage
    ids = [token % 60 for token in range(1200)]
    target.start(1)
    target.prefill(ids)
    assert target.cache.storage is not before
    plain = tiny_target()
    plain.prefill(ids)
    tree = DraftTree.from_lists([1, 2, 3], [-1, 0, 0])
    for _ in range(2):
        torch.testing.assert_close(target.forward(tree).logits, plain.forward(tree).logits, atol=1e-4, rtol=1e-4)


def test_perturbed_weights_are_not_what_a_graph_knows(target: GraphedTarget) -> None:
    tree = DraftTree.root_only(7)
    target.prefill(PROMPT)
    own = target.forward(tree).logits
    with target.perturbed(0.5):
        assert not torch.allclose(target.forward(tree).logits, own, atol=1e-2)
    torch.testing.assert_close(target.forward(tree).logits, own, atol=1e-4, rtol=1e-4)


def test_a_failed_capture_leaves_ordinary_passes_and_says_why() -> None:
    def failing(_work: Callable[[], Any]) -> Callable[[], Any]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    target = graphed(failing)
    assert target.execution == "eager"
    assert target.why_eager == "capturing a pass of 1 rows failed: operation not permitted when stream is capturing"
    target.prefill(PROMPT)
    assert target.forward(DraftTree.root_only(2)).logits.shape == (1, target.vocab_size)


def test_a_capture_that_gives_other_numbers_is_not_used() -> None:
    def stale(work: Callable[[], Any]) -> Callable[[], Any]:
        results = work()  # as if a length had been baked in
        return lambda: results

    target = graphed(stale)
    assert target.execution == "eager"
    assert str(target.why_eager).startswith("a captured pass of 1 rows gives other logits (difference ")


def test_sizes_cover_every_published_tree() -> None:
    assert list(SIZES) == sorted(SIZES)
    assert {1, 64} <= set(SIZES)
