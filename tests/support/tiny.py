"""Tiny random targets and drafters: real architectures, made in milliseconds, no file behind them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from explorer.bitwise import BitwiseTarget
from explorer.errors import DeviceError
from explorer.methods.base import Draft, Method
from explorer.models.attention import register_tree_attention
from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.models.eagle_layer import EagleConfig, EagleDrafter
from explorer.models.medusa_heads import MedusaHeads
from explorer.sampling import Sampler
from explorer.target import Target, TargetOutput
from explorer.tree import DraftTree
from explorer.verify import Verdict

VOCAB = 61
# By transformers' name, with what makes each one ordinary: Qwen2 has biases, Gemma ties and scales its embedding.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": None},
    "qwen2": {},
    "gemma": {"head_dim": 8},
}


def tiny_model(seed: int = 0, architecture: str = "llama", backend: str = "naive", **changes: Any) -> Any:
    """A random model of two layers with grouped-query heads, float32, running our attention."""
    torch.manual_seed(seed)
    values: dict[str, Any] = {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "initializer_range": 0.3,  # wide, so that logits differ clearly
    }
    config = AutoConfig.for_model(architecture, **(values | ARCHITECTURES[architecture] | changes))
    model = AutoModelForCausalLM.from_config(config, attn_implementation=register_tree_attention(backend)).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # transformers begins with zeros, which would hide a bias that is left out
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def tiny_target(
    seed: int = 0, stop_ids: frozenset[int] = frozenset(), backend: str = "naive", **changes: Any
) -> Target:
    """A Target around ``tiny_model``; there is no tokenizer, prompts are ids."""
    return Target(tiny_model(seed, backend=backend, **changes), None, "tiny", stop_ids, backend)


def tiny_bitwise_target(dtype: torch.dtype, **changes: Any) -> BitwiseTarget:
    """``tiny_model`` with bitwise numerics, or a skip where this machine's products are refused for it."""
    try:
        return BitwiseTarget(tiny_model(**changes).to(dtype), None, "tiny", frozenset(), "naive")
    except DeviceError as error:
        pytest.skip(str(error))


def greedy(target: Target, prompt: list[int], num_tokens: int) -> list[int]:
    """Plain greedy continuation by whole forward passes: the slow twin of every decoding method."""
    ids = list(prompt)
    for _ in range(num_tokens):
        target.start(len(ids))
        ids.append(int(target.prefill(ids).logits.argmax()))
    return ids[len(prompt) :]


def tiny_drafter(method: str, target: Target, seed: int = 0) -> Any:
    """A random drafter that fits ``target``; None for methods that need none."""
    torch.manual_seed(seed)
    size = target.hidden_size
    if method == "draft_model":
        return tiny_target(seed + 1, backend=target.backend, vocab_size=target.vocab_size, num_hidden_layers=1)
    if method == "medusa":
        heads = MedusaHeads(num_heads=3, num_layers=1, hidden_size=size, vocab_size=target.vocab_size)
        return heads.requires_grad_(False).eval()
    if method in ("eagle1", "eagle2"):
        config = EagleConfig(size, 48, 4, 2, target.vocab_size)
        drafter = EagleDrafter(config).requires_grad_(False).eval()
        drafter.bind(target.embed_tokens.weight, target.lm_head.weight)
        return drafter
    if method == "eagle3":
        return _tiny_eagle3(target)
    return None


def _tiny_eagle3(target: Target) -> Eagle3Drafter:
    """Over both layers of a tiny target; of a vocabulary that is large enough it drafts every token but each fourth."""
    size, vocab = target.hidden_size, target.vocab_size
    drafted = torch.tensor([token for token in range(vocab) if vocab < 10 or token % 4])
    reduced = None if len(drafted) == vocab else len(drafted)
    config = Eagle3Config(size, 48, 4, 2, vocab, draft_vocab_size=reduced, feature_layers=(0, 1))
    drafter = Eagle3Drafter(config).requires_grad_(False).eval()
    if reduced:
        drafter.d2t.copy_(drafted - torch.arange(reduced))
    drafter.bind(target.embed_tokens.weight)
    return drafter


class Oracle(Method):
    """Drafts the target's own continuation with a wrong sibling before each right token, ``depth`` deep.

    So every token of a step is accepted, and stops, budgets and limits can be put anywhere inside a path.
    """

    name = "oracle"
    label = "Oracle"

    def __init__(self, target: Target, continuation: list[int], depth: int) -> None:
        super().__init__(target, None, None)
        self._continuation = continuation
        self._depth = depth
        self._done = 0

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Token 0 of the continuation is the first root."""
        self._done = 1
        return None

    def draft(self, root: int) -> Draft:
        """Rows 1, 3, 5, ... are wrong, rows 2, 4, 6, ... right; the right ones form the path."""
        tokens, parents = [root], [-1]
        for token in self._continuation[self._done : self._done + self._depth]:
            parent = len(tokens) - 1
            tokens += [(token + 1) % self.target.vocab_size, token]
            parents += [parent, parent]
        return Draft(DraftTree.from_lists(tokens, parents))

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """Move on by everything the verifier decided."""
        self._done += len(verdict.path)
