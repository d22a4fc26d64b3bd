"""The golden checkpoints and what the reference implementations computed on them (tests/goldens/README.md)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from explorer.checkpoints.target import load_target
from explorer.config import Sampling
from explorer.methods.base import Draft, Method
from explorer.sampling import Sampler
from explorer.target import Target
from explorer.tree import DraftTree
from explorer.verify import Verdict, verify_greedy

Judge = Callable[[DraftTree, Tensor], Verdict]
FOLDER = Path(__file__).resolve().parent.parent / "goldens"
TIE_GAP = 2e-5  # below it, draft scores are too close for two float32 implementations to agree on the order


@cache
def golden_target(name: str) -> Target:
    """A golden target, loaded once; its model never changes, its cache starts anew with every run."""
    loaded = load_target(str(FOLDER / name))
    return Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)


@cache
def golden(name: str) -> dict[str, Any]:
    """One file of figures."""
    read: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return read


def replay(
    target: Target, method: Method, prompt: list[int], num_rounds: int, judge: Judge = verify_greedy
) -> Iterator[tuple[Draft, Any, Verdict]]:
    """Decode from the argmax on, stops ignored; yields (draft, target output, verdict) of each round before its commit.

    judge: a rule that draws nothing.
    """
    target.start(0, layers=method.feature_layers)
    output = target.prefill(prompt)
    root = int(output.logits.argmax())
    method.start(prompt, output, Sampler(Sampling()))
    for _ in range(num_rounds):
        draft = method.draft(root)
        output = target.forward(draft.tree())
        verdict = judge(draft.tree(), output.logits)
        yield draft, output, verdict
        target.commit(verdict.path)
        method.update(verdict, output)
        root = verdict.next_token


def assert_static_run(
    target: Target, method: Method, figures: dict[str, Any], run: dict[str, Any], judge: Judge = verify_greedy
) -> None:
    """Every round over a static tree equals the original's: rows, tokens, target choices, tests, what was committed."""
    new_tokens: list[int] = []
    prompt = figures["prompts"][run["prompt"]]["ids"]
    rounds = replay(target, method, prompt, len(run["rounds"]), judge)
    for expected, (draft, output, verdict) in zip(run["rounds"], rounds, strict=True):
        tree = draft.tree()
        assert target.length == expected["L"]
        assert tree.parent_list == figures["tree"]["parents"]
        assert [tree.token_list[row] for row in verdict.path] == expected["committed"]
        assert verdict.next_token == expected["next_root"]
        new_tokens += expected["committed"]
        if expected["tie_gap"] >= TIE_GAP:
            assert tree.token_list == expected["tokens"]
            assert output.logits.argmax(-1).tolist() == expected["target_argmax"]
        if "p" in expected and expected["tie_gap"] >= TIE_GAP:  # written with four digits
            tested = [draw.row for draw in verdict.draws]
            probs, least = ([expected[name][row] for row in tested] for name in ("p", "thr"))
            assert [draw.prob for draw in verdict.draws] == pytest.approx(probs, rel=6e-4)
            assert [draw.threshold for draw in verdict.draws] == pytest.approx(least, rel=6e-4)
    new_tokens.append(run["rounds"][-1]["next_root"])
    assert new_tokens[: len(run["output"])] == run["output"]
