"""A small random part of the vocabulary that stands for all of it in one training step's softmax.

Both sides of the loss, the target and the drafter, are read on the same candidates. Frequent tokens and the step's
own tokens are always among them; the rest is a uniform sample whose logits are raised by log(rest / sampled), which
makes the sum of exponentials an unbiased estimate of the full one (importance sampling, Bengio & Senecal 2008).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Candidates:
    """ids int64 [C], ascending; correction float32 [C] to add to the logits of both sides."""

    ids: Tensor
    correction: Tensor


class CandidateSampler:
    """Draws the candidates of a step: `frequent` int64 [F] always, `num_sampled` of the other ids at random."""

    def __init__(self, vocab_size: int, frequent: Tensor, num_sampled: int) -> None:
        is_rest = torch.ones(vocab_size, dtype=torch.bool)
        is_rest[frequent] = False
        self.vocab_size = vocab_size
        self.frequent = frequent
        self.rest = is_rest.nonzero().flatten()
        self.num_sampled = min(num_sampled, len(self.rest))

    def draw(self, own: Tensor, generator: torch.Generator) -> Candidates:
        """`own`: ids of this step's tokens, any shape, repeats allowed; they are certain, so they get no correction."""
        raised = math.log(len(self.rest) / self.num_sampled) if self.num_sampled else 0.0
        correction = torch.full((self.vocab_size,), math.nan)
        if self.num_sampled:
            chosen = torch.randperm(len(self.rest), generator=generator)[: self.num_sampled]
            correction[self.rest[chosen]] = raised
        correction[own.flatten()] = 0.0
        correction[self.frequent] = 0.0
        ids = (~correction.isnan()).nonzero().flatten()
        return Candidates(ids, correction[ids])
