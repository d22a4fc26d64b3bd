"""A draft over fixed shapes, recorded and replayed, is the draft of passes launched one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from explorer.graphed import GraphedTarget
from explorer.methods.eagle2 import MAX_FIXED_DRAFTS, Eagle2, Eagle2Settings
from explorer.methods.eagle3 import Eagle3, Eagle3Settings
from explorer.methods.eagle_tree import Grown
from explorer.tree import DraftTree
from explorer.verify import Verdict
from tests.support.captured import recorded
from tests.support.goldens import replay
from tests.support.tiny import tiny_drafter, tiny_model, tiny_target

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
SHAPES = [(60, 5, 10), (12, 3, 4), (3, 0, 2), (5, 3, 1)]
PLAIN = Verdict((0,), (), ("root",), (float("nan"),), (), 0, "bonus")
KINDS = {"eagle2": (Eagle2, Eagle2Settings), "eagle3": (Eagle3, Eagle3Settings)}


def graphed(capture: Callable[..., Any] = recorded) -> GraphedTarget:
    return GraphedTarget(tiny_model(), None, "tiny", frozenset(), "naive", capture=capture)


def drafts(name: str, target: Any, shape: tuple[int, int, int], num_steps: int = 6) -> list[tuple[Any, ...]]:
    """What each step drafted: tokens, parents, kept rows, probabilities; and the drafter's ranks of some tokens."""
    kind, settings = KINDS[name]
    drafter = tiny_drafter(name, target)
    found = []
    for _ in range(2):  # the second run finds what the first captured
        method = kind(target, drafter, settings(*shape))
        found = []
        for draft, _, _ in replay(target, method, PROMPT, num_steps):
            considered = draft.considered
            rows = sorted({0, 1, len(considered) - 1})
            ranks = [draft.rank_of(row, token) for row in rows for token in (1, 7, 22)] if draft.rank_of else []
            columns = (considered.token_list, considered.parent_list, draft.kept_rows(), ranks)
            found.append((*columns, considered.draft_probs[1:].tolist(), draft.extra))
    return found


@pytest.mark.parametrize("layers", ["packed", "modules"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_equals_passes_launched_one_by_one(
    name: str, shape: tuple[int, int, int], layers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if layers == "modules":  # transformers' own, as on a GPU
        for module in ("explorer.target", "explorer.models.packed"):
            monkeypatch.setattr(f"{module}.is_packable", lambda _layer: False)
    plain, fixed = drafts(name, tiny_target(), shape), drafts(name, graphed(), shape)
    for (*expected, probs, _), (*got, own_probs, extra) in zip(plain, fixed, strict=True):
        assert got == expected
        assert own_probs == pytest.approx(probs, rel=1e-3, abs=1e-6)
        assert extra == {"execution": "graphed"}


def test_pairs_of_plain_steps_are_caught_up_with() -> None:
    """A method that rested has more pairs to read than one captured pass takes."""
    found = []
    for target in (tiny_target(), graphed()):
        method = Eagle2(target, tiny_drafter("eagle2", target), Eagle2Settings(8, 1, 3))
        target.start(64)
        method.start(PROMPT, target.prefill(PROMPT), None)
        for step in range(12):
            is_resting = step % 8
            root = (step * 7) % 60
            method.rest(root) if is_resting else found.append(method.draft(root).tree().token_list)
            output = target.forward(DraftTree.root_only(root))
            target.commit([0])
            method.update(PLAIN, output)
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    assert len(found) == 4


def test_a_drafter_keeps_what_was_captured_for_the_last_few_shapes() -> None:
    target = graphed()
    drafter = tiny_drafter("eagle2", target)
    for depth in (1, 2, 3, 1, 4, 5):  # the first one is used again before the last two
        Eagle2(target, drafter, Eagle2Settings(3, depth, 2))
    assert [shape.depth for shape in drafter.fixed_drafts] == [3, 1, 4, 5]
    assert len(drafter.fixed_drafts) == MAX_FIXED_DRAFTS


@pytest.mark.parametrize("kind", ["fails", "stale"])
def test_a_capture_that_does_not_work_is_not_used(kind: str) -> None:
    def fails(_work: Callable[[], Any]) -> Callable[[], Any]:
        raise RuntimeError("operation not permitted when stream is capturing")

    def stale(work: Callable[[], Any]) -> Callable[[], Any]:
        results = work()
        if not isinstance(results, Grown):  # the target's own passes are right
            return work
        copied = results._replace(logprobs=results.logprobs.clone())
        return lambda: copied

    target = graphed()
    target.capture = fails if kind == "fails" else stale
    expected = drafts("eagle2", tiny_target(), (12, 3, 4))
    got = drafts("eagle2", target, (12, 3, 4))
    assert [step[:4] for step in got] == [step[:4] for step in expected]
    assert got[-1][-1] == {"execution": "eager"}
