"""EAGLE-3: EAGLE-2's tree from another drafter, lossless over published files, and a pass it alone makes watched.

What it shares with the other EAGLE methods (its cache, levels, greedy and sampled runs) is tested with theirs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.checkpoints.eagle3 import load_eagle3
from explorer.engine import DecodeOptions, Decoding
from explorer.methods.autoregressive import Autoregressive
from explorer.methods.base import NoSettings
from explorer.methods.eagle2 import Eagle2, Eagle2Settings
from explorer.methods.eagle3 import Eagle3, Eagle3Settings
from explorer.target import Target
from tests.support.eagle3_files import LAYERS, eagle3_tensors, write_eagle3
from tests.support.eagle_twin import Twin3
from tests.support.goldens import golden, golden_target, replay
from tests.support.tiny import ARCHITECTURES, tiny_bitwise_target, tiny_drafter, tiny_target

PROMPT = [5, 6, 7, 8]


def decode(target: Target, method: Any, num_tokens: int = 20) -> list[int]:
    decoding = Decoding(target, method, PROMPT, DecodeOptions(num_tokens, ignore_stop=True))
    decoding.prefill()
    list(decoding.steps())
    return decoding.output


@pytest.mark.parametrize("base", ["base_a", "base_b"])
def test_a_published_file_writes_what_transformers_wrote(tmp_path: Path, base: str) -> None:
    target = golden_target(base)
    drafter = load_eagle3(str(write_eagle3(tmp_path, layers=LAYERS)), target).module
    figures = golden(f"hf_greedy__{base}")
    for run in [run for run in figures["runs"] if run["mode"] == "noeos"][:2]:
        ids, expected = figures["prompts"][run["prompt"]]["ids"], run["output"][:40]
        method = Eagle3(target, drafter, Eagle3Settings(total_tokens=16, depth=3, top_k=4))
        decoding = Decoding(target, method, ids, DecodeOptions(40, ignore_stop=True))
        decoding.prefill()
        list(decoding.steps())
        assert decoding.output == expected


def test_the_first_levels_are_the_twins(tmp_path: Path) -> None:
    """Features from transformers' own hidden states; draft probabilities by a twin without any of our modules."""
    target = golden_target("base_a")
    tensors = eagle3_tensors()
    drafter = load_eagle3(str(write_eagle3(tmp_path, layers=LAYERS)), target).module
    method = Eagle3(target, drafter, Eagle3Settings(total_tokens=40, depth=2, top_k=3))
    (draft, _, _), *_ = replay(target, method, PROMPT, 1)
    tree = draft.considered
    target.start(0, layers=LAYERS)
    entered = target.prefill(PROMPT).layers
    features = torch.cat([entered[layer] for layer in LAYERS], dim=-1)
    twin, root = Twin3(tensors, 4, 500000.0, 1e-5), tree.token_list[0]
    for row in range(len(tree)):
        if not tree.children(row):
            continue
        path, at = [row], row
        while tree.parent_list[at] >= 0:
            at = tree.parent_list[at]
            path.insert(0, at)
        tokens = torch.tensor([*PROMPT[1:], root, *(tree.token_list[node] for node in path[1:])])
        logits = twin.logits(twin.predicted(target.embed_tokens.weight, tokens, features)[-1])
        best = logits.softmax(-1).topk(3)
        children = tree.children(row)
        assert [tree.token_list[child] for child in children] == drafter.to_target(best.indices).tolist()
        torch.testing.assert_close(tree.draft_probs[children], best.values, atol=1e-4, rtol=1e-3)


def test_only_its_own_runs_watch_the_target() -> None:
    target = tiny_target()
    three = Eagle3(target, tiny_drafter("eagle3", target), Eagle3Settings(total_tokens=8, depth=1, top_k=3))
    two = Eagle2(target, tiny_drafter("eagle2", target), Eagle2Settings(total_tokens=8, depth=1, top_k=3))
    plain = Autoregressive(target, None, NoSettings())
    expected = decode(target, plain)
    for method, watched in ((three, {0, 1}), (plain, set()), (two, set()), (three, {0, 1}), (two, set())):
        assert decode(target, method) == expected
        assert target.forward(three.draft(expected[-1]).tree()).layers.keys() == watched


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rows_that_are_doubled_to_be_exact_are_read_once(architecture: str) -> None:
    target = tiny_bitwise_target(torch.float32, architecture=architecture)
    method = Eagle3(target, tiny_drafter("eagle3", target), Eagle3Settings(total_tokens=8, depth=1, top_k=3))
    assert decode(target, method) == decode(target, Autoregressive(target, None, NoSettings()))


def test_the_published_defaults() -> None:
    assert Eagle3Settings() == Eagle3Settings(total_tokens=60, depth=7, top_k=10)
