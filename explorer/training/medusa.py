"""Recipe: Medusa heads over the frozen target (Medusa-1), read through the target's own LM head."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.models.medusa_heads import MedusaHeads
from explorer.training.candidates import CandidateSampler
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.teacher import HeldOut, soft_cross_entropy, top_tokens

NUM_RANKS = 10


@dataclass(frozen=True)
class MedusaOptions:
    """Shape of the heads and of the loss. decay: weight of head h is decay ** h (axolotl's Medusa recipe: 0.8)."""

    num_heads: int = 4
    num_layers: int = 2
    decay: float = 0.8
    num_frequent: int = 1536
    num_sampled: int = 1024


class MedusaRecipe:
    """Each head learns the target's whole next-token distribution 1 + h tokens further on.

    That distribution is the LM head applied to the hidden state already on disk, so no second pass is needed.
    """

    def __init__(self, lm_head: Tensor, frequent: Tensor, held_out: FeatureSet, options: MedusaOptions) -> None:
        vocab_size, hidden_size = lm_head.shape
        self.options = options
        self.network = MedusaHeads(options.num_heads, options.num_layers, hidden_size, vocab_size)
        for parameter in self.network.parameters():
            if parameter.ndim == 1:
                torch.nn.init.zeros_(parameter)  # with zero weights too, a head starts as the target's own next guess
        self._lm_head = lm_head
        self._sampler = CandidateSampler(vocab_size, frequent[: options.num_frequent], options.num_sampled)
        self._held_out = HeldOut(held_out, lm_head)

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """Decay-weighted mean cross-entropy of the heads over answer tokens; source: Medusa section 2.2.1."""
        candidates = self._sampler.draw(batch.tokens, generator)
        rows = self._lm_head[candidates.ids]
        with torch.no_grad():
            teacher = (batch.features @ rows.T + candidates.correction).softmax(-1)
        losses = []
        for index, head in enumerate(self.network):
            mask = batch.answer_mask(index + 2)
            logits = head(batch.features[mask]) @ rows.T + candidates.correction
            wanted = teacher[:, index + 1 :][mask[:, : mask.shape[1] - index - 1]]
            losses.append(self.options.decay**index * soft_cross_entropy(logits, wanted))
        return torch.stack(losses).sum()

    def evaluate(self) -> dict[str, float]:
        """Top-1 agreement of each head with the target; the score is the expected length of a pure top-1 chain."""
        return chain_figures(self.rank_accuracy(num_batches=2))

    @torch.inference_mode()
    def rank_accuracy(self, num_batches: int | None = None) -> Tensor:
        """float [num_heads, 10]: share of held-out tokens at which the head's rank-r guess is the target's argmax."""
        return self.accuracy_over(self._held_out.pairs(num_batches))

    def accuracy_over(self, pairs: Iterable[tuple[Batch, Tensor]]) -> Tensor:
        """The same over other batches, each with the target's argmax after every position, [B, T]."""
        hits = torch.zeros(self.options.num_heads, NUM_RANKS)
        counts = torch.zeros(self.options.num_heads, 1)
        for batch, best in pairs:
            for index, head in enumerate(self.network):
                mask = batch.answer_mask(index + 2)
                guesses = top_tokens(head(batch.features[mask]), self._lm_head, NUM_RANKS)
                wanted = best[:, index + 1 :][mask[:, : mask.shape[1] - index - 1]]
                hits[index] += (guesses == wanted[:, None]).sum(0)
                counts[index] += len(wanted)
        return hits / counts.clamp(min=1)


def chain_figures(accuracy: Tensor) -> dict[str, float]:
    """What a training reports of accuracy [heads, ranks]; the score counts on a chain of first guesses."""
    chain = accuracy[:, 0].cumprod(0).sum().item()
    return {f"head_{index}": row[0].item() for index, row in enumerate(accuracy)} | {"score": chain}
