"""Recipe: Medusa-2, heads and a low-rank adapter of the target trained together, with self-distillation.

Source: Medusa (arXiv 2401.10774), sections 2.2.2 (joint training) and 2.3.2 (self-distillation: the loss that keeps
the target is the KL divergence from the same model without its adapter), and the axolotl fork that trained it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from explorer.errors import SettingError
from explorer.models.low_rank import TargetAdapter, adapted, matrix_sizes
from explorer.models.medusa_heads import MedusaHeads
from explorer.training.candidates import CandidateSampler
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.medusa import MedusaOptions, MedusaRecipe, chain_figures
from explorer.training.teacher import ROWS_AT_ONCE, HeldOut, top_tokens

ADAPTER_NAMES = "adapter."  # how the adapter's parameters begin in the network


@dataclass(frozen=True)
class Medusa2Options(MedusaOptions):
    """Beside the heads' options, those of the adapter and of the joint loss.

    The change of a matrix is ``alpha / rank`` times its low-rank product. head_weight: of the heads' loss at the end,
    which a quarter of a sine leads up to; adapter_share: the adapter's part of the heads' learning rate. Both are those
    of axolotl's self-distillation. The rank makes an adapter of 2.4 MB of float16 for SmolLM2-135M-Instruct.
    """

    rank: int = 4
    alpha: float = 8.0
    head_weight: float = 0.01
    adapter_share: float = 0.25


class Medusa2Network(nn.Module):
    """What is trained; the target itself is frozen and no part of it."""

    def __init__(self, heads: MedusaHeads, adapter: TargetAdapter) -> None:
        super().__init__()
        self.heads = heads
        self.adapter = adapter


class Measured(NamedTuple):
    """Over held-out answer tokens: accuracy [heads, ranks] of the heads with the adapted target as judge, and its
    distance from the original as explorer.adapter_words.AdapterRecord has it."""

    accuracy: Tensor
    mean_kl: float
    agreement: float
    num_tokens: int


@dataclass
class _Distance:
    """Sums over tokens."""

    kl: float = 0.0
    num_equal: int = 0
    num_tokens: int = 0

    def add(self, original: Tensor, own: Tensor, lm_head: Tensor) -> None:
        """original and own: hidden states [R, H] of the target without and with its adapter."""
        for before, after in zip(original.split(ROWS_AT_ONCE), own.split(ROWS_AT_ONCE), strict=True):
            wanted, given = (before @ lm_head.T).log_softmax(-1), (after @ lm_head.T).log_softmax(-1)
            self.kl += float(nn.functional.kl_div(given, wanted, reduction="sum", log_target=True))
            self.num_equal += int((wanted.argmax(-1) == given.argmax(-1)).sum())
            self.num_tokens += len(before)


class Medusa2Recipe:
    """The heads learn what the adapted target wants, from its hidden states; it learns to be read by them.

    What holds it back is the original: its features are on disk already, so training never computes them.
    """

    def __init__(
        self, decoder: Any, lm_head: Tensor, frequent: Tensor, held_out: FeatureSet, options: Medusa2Options
    ) -> None:
        """decoder: the target's frozen body with ordinary causal attention; the rest as of MedusaRecipe."""
        sizes = matrix_sizes(decoder)
        if not sizes:
            raise SettingError("this target has no linear layers that an adapter could change")
        self.options = options
        self._medusa = MedusaRecipe(lm_head, frequent, held_out, options)
        adapter = TargetAdapter(sizes, options.rank, options.alpha / options.rank)
        self.network = Medusa2Network(self._medusa.network, adapter)
        self._decoder = decoder
        self._lm_head = lm_head
        self._sampler = CandidateSampler(lm_head.shape[0], frequent[: options.num_frequent], options.num_sampled)
        self._held_out = HeldOut(held_out, lm_head)

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """KL(original || adapted) over answer tokens, plus the heads' loss over the adapted target's features."""
        hidden = self.hidden(batch.tokens)
        candidates = self._sampler.draw(batch.tokens, generator)
        rows, mask = self._lm_head[candidates.ids], batch.answer_mask(1)
        with torch.no_grad():
            original = (batch.features[mask] @ rows.T + candidates.correction).float().log_softmax(-1)
        own = (hidden[mask] @ rows.T + candidates.correction).float().log_softmax(-1)
        kept = nn.functional.kl_div(own, original, reduction="batchmean", log_target=True)
        weight = self.options.head_weight * math.sin(math.pi / 2 * progress)
        return kept + weight * self._medusa.loss(replace(batch, features=hidden), generator, progress)

    def hidden(self, tokens: Tensor, *, is_adapted: bool = True) -> Tensor:
        """[B, T] ids, right-padded, to the [B, T, H] that the LM head reads; without the adapter, the original's."""
        if not is_adapted:
            return self._states(tokens)
        with adapted(self._decoder, self.network.adapter):
            return self._states(tokens)

    def _states(self, tokens: Tensor) -> Tensor:
        states: Tensor = self._decoder(input_ids=tokens, use_cache=False).last_hidden_state
        return states.float()

    def evaluate(self) -> dict[str, float]:
        """Top-1 agreement of each head with the adapted target, and how far that is from the original."""
        found = self.measure(num_batches=2)
        return {"kl": found.mean_kl, "agreement": found.agreement} | chain_figures(found.accuracy)

    @torch.inference_mode()
    def measure(self, num_batches: int | None = None) -> Measured:
        """Heads and distance over the first held-out batches, None for all; whole softmaxes."""
        distance = _Distance()
        accuracy = self._medusa.accuracy_over(self._read(num_batches, distance))
        count = max(distance.num_tokens, 1)
        return Measured(accuracy, distance.kl / count, distance.num_equal / count, distance.num_tokens)

    def _read(self, num_batches: int | None, distance: _Distance) -> Iterator[tuple[Batch, Tensor]]:
        """Held-out batches with the adapted target's features, and its choices."""
        for batch, _ in self._held_out.pairs(num_batches):
            own, original = self.hidden(batch.tokens), self.hidden(batch.tokens, is_adapted=False)
            mask = batch.answer_mask(1)
            distance.add(original[mask], own[mask], self._lm_head)
            yield replace(batch, features=own), top_tokens(own, self._lm_head, 1)[..., 0]
