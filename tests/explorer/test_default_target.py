"""On the real default target: every method writes what plain decoding writes, and that is what transformers writes."""

from __future__ import annotations

import json

import pytest
import torch

from explorer.checkpoints import smollm2
from explorer.checkpoints.target import load_target
from explorer.config import repo_path, resolve
from explorer.engine import DecodeOptions, Decoding
from explorer.loading import LOADERS
from explorer.methods.registry import METHODS
from explorer.run_trace import find_divergence
from explorer.target import Target
from explorer.target_presets import find_target, load_targets
from explorer.text import render_prompt

pytestmark = [pytest.mark.default_target, pytest.mark.slow]

PRESET = find_target("smollm2", load_targets())
OFFERED = [name for name, method in METHODS.items() if not method.needs_drafter or name in PRESET.drafters]
NUM_TOKENS = 20
TINY_GAP = 5e-4  # logits; below it two float32 routes through the same weights may choose differently
PROMPTS = [item["text"] for item in json.loads(repo_path("assets", "presets", "prompts.json").read_text("utf-8"))] + [
    "Name five animals that live in the sea.",
    "def fibonacci(n):",
    "Translate to German: Good morning, how are you?",
]


@pytest.fixture(scope="module")
def target() -> Target:
    loaded = load_target("smollm2", dtype="float32")
    return Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)


@pytest.fixture(scope="module")
def reference(target: Target) -> list[list[int]]:
    """What transformers' own generate writes with its own attention and cache, up to and with a stop token.

    All prompts go through in one batch, filled up on the left: it reads the weights once a token and not once a prompt.
    """
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(smollm2.target_dir(), dtype=torch.float32).eval()
    prompts = [render_prompt(target.tokenizer, text, None, True).token_ids for text in PROMPTS]
    length = max(map(len, prompts))
    inputs = torch.tensor([[0] * (length - len(ids)) + ids for ids in prompts])
    mask = torch.tensor([[0] * (length - len(ids)) + [1] * len(ids) for ids in prompts])
    written = model.generate(inputs, attention_mask=mask, max_new_tokens=NUM_TOKENS, do_sample=False)
    outputs = []
    for row in written[:, length:].tolist():
        end = next((index for index, token in enumerate(row) if token in target.stop_ids), NUM_TOKENS)
        outputs.append(row[: end + 1])
    return outputs


@pytest.mark.parametrize("name", OFFERED)
def test_greedy_output_equals_transformers_on_twelve_prompts(
    name: str, target: Target, reference: list[list[int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(PROMPTS) == 12
    settings, _ = resolve(METHODS[name].Settings, PRESET.method_settings(name, "cpu"))
    drafter = LOADERS[name](str(repo_path(PRESET.drafters[name])), target).module if name in LOADERS else None
    exceptions, num_passes, num_tokens = [], 0, 0
    for text, expected in zip(PROMPTS, reference, strict=True):
        ids = render_prompt(target.tokenizer, text, None, True).token_ids
        decoding = Decoding(target, METHODS[name](target, drafter, settings), ids, DecodeOptions(NUM_TOKENS))
        decoding.prefill()
        num_passes += len(list(decoding.steps()))
        num_tokens += len(decoding.output) - 1
        divergence = find_divergence(decoding.output, expected, decoding.gaps)
        if divergence is not None:
            assert divergence.gap is not None
            assert divergence.gap < TINY_GAP, f"{text!r}: {divergence}"
            exceptions.append((text, divergence))
    with capsys.disabled():
        print(f"\n{name}: {len(exceptions)} divergences at near-ties {exceptions}, tau {num_tokens / num_passes:.2f}")
    if METHODS[name].needs_drafter:
        assert num_tokens > 1.05 * num_passes  # a shipped drafter that is never right would pass for a broken one
