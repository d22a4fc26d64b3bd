"""What transformers itself does with the same weights: the benchmark's lanes from outside, timed as a caller sees them.

``generate`` decodes plainly, ``generate_lookup`` with prompt lookup, ``generate_assisted`` with the draft model; all
with transformers' defaults, its own attention and cache, and none of our layers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from explorer.bench_report import GENERATE, GENERATE_ASSISTED, GENERATE_LOOKUP
from explorer.checkpoints.draft_model import load_draft_model
from explorer.checkpoints.target import load_reference
from explorer.checkpoints.target_adapter import read_adapter
from explorer.config import Sampling
from explorer.errors import DeviceError
from explorer.models.low_rank import merge
from explorer.models.split import SPLIT
from explorer.target import Target

NUM_WARM_UP = 4  # tokens
NUM_LOOKUP = 10  # tokens a copy, as in the method's own repository (apoorvumang/prompt-lookup-decoding)


class PeerRun(NamedTuple):
    """One answer. prefill_ms: what the same call takes for one token; total_ms includes it."""

    output: list[int]
    prefill_ms: float
    total_ms: float


class Peers:
    """transformers' own models of one target: loaded when the first lane needs them, kept for the next prompt."""

    def __init__(self, target: Target, source: str, draft_model: str | None, adapter: str | None = None) -> None:
        """source: what the target was loaded from; draft_model: what ``generate_assisted`` drafts with.

        adapter: the drafter that adapts the target, if one does.
        """
        if target.places:
            raise DeviceError(f"transformers' own lanes need a target on one device, and this one is {SPLIT}")
        self._target = target
        self._reference = load_reference(source, target.device, target.dtype)
        if adapter is not None:
            decoder = self._reference.get_decoder()
            merge(decoder, read_adapter(adapter, decoder))
        self._draft_model = draft_model
        self._assistant: Any = None

    def run(self, lane: str, ids: list[int], max_new_tokens: int, sampling: Sampling, stops: Sequence[int]) -> PeerRun:
        """Warm up, time the prompt pass, then the whole answer. stops: token ids that end it; none: it runs on."""
        options = self._options(lane) | _sampling_options(sampling) | {"eos_token_id": list(stops) or None}
        self._timed(ids, NUM_WARM_UP, options, sampling.seed)
        prefill_ms, _ = self._timed(ids, 1, options, sampling.seed)
        total_ms, output = self._timed(ids, max_new_tokens, options, sampling.seed)
        return PeerRun(output, prefill_ms, total_ms)

    def _options(self, lane: str) -> dict[str, Any]:
        if lane == GENERATE:
            return {}
        if lane == GENERATE_LOOKUP:
            return {"prompt_lookup_num_tokens": NUM_LOOKUP}
        assert lane == GENERATE_ASSISTED and self._draft_model is not None, lane
        if self._assistant is None:
            self._assistant = self._load_assistant(self._draft_model)
        return {"assistant_model": self._assistant}

    def _load_assistant(self, source: str) -> Any:
        loaded = load_draft_model(source, self._target)
        loaded.model.set_attn_implementation("sdpa")
        if loaded.shares_embedding:  # with the plain model's layers, not with ours
            loaded.model.set_input_embeddings(self._reference.get_input_embeddings())
            loaded.model.set_output_embeddings(self._reference.get_output_embeddings())
        return loaded.model

    def _timed(self, ids: list[int], num_tokens: int, options: dict[str, Any], seed: int) -> tuple[float, list[int]]:
        inputs = torch.tensor([ids], device=self._target.device)
        mask = torch.ones_like(inputs)
        torch.manual_seed(seed)
        started = time.perf_counter()
        with torch.inference_mode():
            written = self._reference.generate(inputs, attention_mask=mask, max_new_tokens=num_tokens, **options)
        output: list[int] = written[0, len(ids) :].tolist()  # waits for the device
        return (time.perf_counter() - started) * 1e3, output


def _sampling_options(sampling: Sampling) -> dict[str, Any]:
    """Our sampling as transformers' generate takes it; its own default for top_k is 50, so all are said."""
    if sampling.is_greedy:
        return {"do_sample": False}
    filters = {"top_k": sampling.top_k, "top_p": float(sampling.top_p)}
    return {"do_sample": True, "temperature": float(sampling.temperature)} | filters
