"""Trained targets of four architectures, in sharded files: every method writes what transformers wrote for the golden.

The drafters are those of the golden targets, so that drafts are accepted; each converted target is the same function.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from explorer.checkpoints.target import load_target
from explorer.engine import DecodeOptions, Decoding
from explorer.loading import LOADERS
from explorer.methods.registry import METHODS
from explorer.target import Target
from tests.support.converted import convert
from tests.support.goldens import FOLDER, golden
from tests.support.tiny import tiny_drafter

KINDS = [
    ("base_a", "llama", "bin"),
    ("base_a", "mistral", "safetensors"),
    ("base_a", "qwen2", "bin"),
    ("base_b", "gemma", "safetensors"),
    ("base_b", "qwen2", "safetensors"),
]
DRAFTERS = {
    ("base_a", "medusa"): "medusa_a",
    ("base_a", "eagle1"): "eagle_bias",
    ("base_a", "eagle2"): "eagle_bias",
    ("base_b", "medusa"): "medusa_b",
    ("base_b", "eagle1"): "eagle_nobias",
    ("base_b", "eagle2"): "eagle_nobias",
}
NUM_TOKENS = 60


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Target]:
    """(golden target, the same as another architecture, loaded from its files)."""
    base, architecture, kind = request.param
    loaded = load_target(str(convert(base, architecture, tmp_path_factory.mktemp("targets"), kind=kind)), device="cpu")
    assert loaded.model.config.model_type == architecture
    assert len(loaded.stop_ids) == 2
    assert (loaded.model.get_input_embeddings().weight is loaded.model.get_output_embeddings().weight) == (
        base == "base_b"
    )
    return base, Target(loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)


def runs_of(base: str) -> list[dict[str, Any]]:
    figures = golden(f"hf_greedy__{base}")
    runs = [run for run in figures["runs"] if run["mode"] == "noeos"][:2]
    return [{"ids": figures["prompts"][run["prompt"]]["ids"], "output": run["output"][:NUM_TOKENS]} for run in runs]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_writes_the_goldens_output(name: str, converted: tuple[str, Target]) -> None:
    base, target = converted
    source = DRAFTERS.get((base, name))
    drafter = LOADERS[name](str(FOLDER / source), target).module if source else tiny_drafter(name, target)
    num_steps = 0
    for run in runs_of(base):
        method = METHODS[name](target, drafter, METHODS[name].Settings())
        decoding = Decoding(target, method, run["ids"], DecodeOptions(NUM_TOKENS, ignore_stop=True))
        decoding.prefill()
        num_steps += len(list(decoding.steps()))
        assert decoding.output == run["output"]
    if source is not None:
        assert num_steps < 2 * NUM_TOKENS * 0.7, "the goldens' drafters guess well here too"


@pytest.mark.parametrize("text", ["Hello there", "def add(a, b):"])
def test_logits_are_those_of_transformers(text: str, converted: tuple[str, Target], tmp_path: Path) -> None:
    """Its own attention, no cache, nothing fused or packed."""
    from transformers import AutoModelForCausalLM

    base, target = converted
    architecture = next(kind for kind in ("mistral", "qwen2", "gemma", "llama") if target.name.endswith(kind))
    folder = convert(base, architecture, tmp_path)
    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = target.tokenizer(text).input_ids
    target.start(0)
    with torch.inference_mode():
        expected = reference(torch.tensor([ids])).logits[0]
        torch.testing.assert_close(target.head(target.prefill(ids).hidden), expected, atol=1e-4, rtol=0)
