"""Jacobi decoding: the target's own argmaxes of one pass are the guesses of the next (arXiv 2305.10427, section 3).

A block of guesses after the root is read in one causal pass; each of them is replaced by the target's argmax at its
place. The first is right then, and the rest may be. The paper begins a new block when the whole block stands still;
here the block slides: what is fixed leaves at the front, tokens of the prompt come in at the back as new first guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from explorer.config import setting
from explorer.methods.base import Draft, Method
from explorer.methods.guesses import random_tokens
from explorer.sampling import Sampler, best_tokens
from explorer.tree import DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.target import Target, TargetOutput


@dataclass(frozen=True)
class JacobiSettings:
    """How much is guessed at once."""

    block: int = setting(5, kind="int", min=1, max=128, step=1, help="guesses read in one pass, the root not counted")


class Jacobi(Method):
    """Drafts a chain: what the target itself said after the guesses of the last pass."""

    name = "jacobi"
    label = "Jacobi"
    Settings = JacobiSettings

    def __init__(self, target: Target, drafter: None, settings: JacobiSettings) -> None:
        super().__init__(target, drafter, settings)
        self._prompt_ids: list[int] = []
        self._carried: list[int] = []  # argmaxes of the last pass beyond the next root
        self._generator = torch.Generator()

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Nothing is carried into the first block."""
        self._prompt_ids, self._carried, self._generator = prompt_ids, [], sampler.generator
        return None

    def draft(self, root: int) -> Draft:
        """The argmaxes carried over, then first guesses up to ``block``; ``extra`` says how many are which."""
        num_new = self.settings.block - len(self._carried)
        guesses = [*self._carried, *random_tokens(self._prompt_ids, num_new, self._generator)]
        chain = DraftTree.from_lists([root, *guesses], range(-1, len(guesses)))
        return Draft(chain, extra={"guess_tokens": guesses, "num_carried": len(self._carried)})

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """Row i of the chain is followed by the target's choice for guess i + 1; those after the next root remain."""
        choices = best_tokens(output.logits[verdict.path[-1] + 1 :])
        self._carried = choices[: self.settings.block]
