"""Whole runs of methods on the default target on a GPU."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cache as remember
from typing import Any

from explorer.checkpoints.target import load_target
from explorer.config import repo_path, resolve
from explorer.engine import DecodeOptions, Decoding
from explorer.graphed import GraphedTarget
from explorer.loading import LOADERS
from explorer.methods.registry import METHODS
from explorer.target import Target
from explorer.target_presets import find_target, load_targets
from explorer.text import render_prompt

WAYS = [  # backend, cache, execution
    ("naive", "rows", "eager"),
    ("triton", "rows", "eager"),
    ("triton", "slots", "eager"),
    ("naive", "rows", "graphed"),
    ("triton", "rows", "graphed"),
    ("triton", "slots", "graphed"),
]
PROMPTS = [
    "Write a Python function that reverses a linked list.",
    "Explain in a few sentences why the sky is blue.",
    "Name five animals that live in the sea.",
]


@dataclass(frozen=True)
class Result:
    """One run: its tokens, tokens a pass, milliseconds by kind, and milliseconds a step (medians)."""

    output: list[int]
    tokens_per_pass: float
    verify_ms: float
    draft_ms: float
    commit_ms: float
    step_ms: float
    tokens_per_second: float


@remember
def load(backend: str, dtype: str, execution: str = "eager") -> Target:
    """The default target on the GPU; with its drafters, when ``decode`` asks for them.

    Raises RuntimeError where graphs are asked for and not to be had.
    """
    loaded = load_target("smollm2", device="cuda", dtype=dtype, backend=backend)
    kind = GraphedTarget if execution == "graphed" else Target
    target = kind(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)
    if target.execution != execution:
        raise RuntimeError(target.why_eager)
    return target


@remember
def _drafter(name: str, target: Target) -> object:
    source = find_target("smollm2", load_targets()).drafters.get(name)
    return LOADERS[name](str(repo_path(source)), target).module if source else None


def decode(target: Target, name: str, cache: str, prompt: str, num_tokens: int) -> Result:
    """One greedy run, with the settings that the default target has on a GPU; the second of two, the first warms up."""
    kind = METHODS[name]
    settings: Any = resolve(kind.Settings, find_target("smollm2", load_targets()).method_settings(name, "cuda"))[0]
    ids = render_prompt(target.tokenizer, prompt, None, True).token_ids
    for count in (8, num_tokens):
        method = kind(target, _drafter(name, target), settings)
        decoding = Decoding(target, method, ids, DecodeOptions(count, ignore_stop=True, cache=cache))
        decoding.prefill()
        steps = list(decoding.steps())
    num_new = len(decoding.output) - 1
    total_ms = sum(step.ms.total for step in steps)
    return Result(
        output=decoding.output,
        tokens_per_pass=num_new / len(steps),
        verify_ms=statistics.median(step.ms.verify for step in steps),
        draft_ms=statistics.median(sum(step.ms.draft) for step in steps),
        commit_ms=statistics.median(step.ms.commit for step in steps),
        step_ms=statistics.median(step.ms.total for step in steps),
        tokens_per_second=1000 * num_new / total_ms,
    )
