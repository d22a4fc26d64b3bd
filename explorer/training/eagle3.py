"""Recipe: EAGLE-3's drafter, trained by what it will meet when it drafts: its own features, several steps deep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from explorer.errors import SettingError
from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.training.candidates import CandidateSampler
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.teacher import HeldOut, soft_cross_entropy
from explorer.training.unrolled import UNROLLED, unroll


@dataclass(frozen=True)
class Eagle3Options:
    """num_steps: unrolled steps, the first on true features (the authors' recipe: 7; a tree of depth d reaches d + 1).

    decay: weight of a step's loss over that of the one before. own_head: train an LM head of its own, as the authors
    do, instead of reading through the target's. num_frequent, num_sampled: see explorer.training.candidates.
    """

    num_steps: int = 4
    decay: float = 0.8
    own_head: bool = False
    num_frequent: int = 1024
    num_sampled: int = 1024


class Eagle3Recipe:
    """Soft cross-entropy on tokens at every step of the training-time test (EAGLE-3, arXiv 2503.01840, section 3.2).

    Nothing asks that features resemble the target's. Positions whose token the drafter cannot propose have no loss: the
    target wrote the text, so that it is what the target wants there. The LM head begins as the target's rows of the
    draft vocabulary, and stays so without ``own_head``.
    """

    def __init__(
        self,
        config: Eagle3Config,
        draft_tokens: Tensor,
        embedding: Tensor,
        lm_head: Tensor,
        held_out: FeatureSet,
        options: Eagle3Options,
    ) -> None:
        """draft_tokens: int64 [draft_vocab] target ids the drafter may propose, the most frequent first.

        All of them where ``config`` has no draft vocabulary. Raises SettingError where the target's LM head does not
        fit and ``own_head`` is not set.
        """
        self.options = options
        self.network = Eagle3Drafter(config)
        self.network.attend_with(UNROLLED)
        ascending = draft_tokens.sort().values
        if config.draft_vocab_size is not None:
            self.network.d2t.copy_(ascending - torch.arange(len(ascending)))
        self.network.bind(embedding)
        self._rows = lm_head[ascending]
        if self._rows.shape == self.network.lm_head.weight.shape:
            self.network.lm_head.weight.data.copy_(self._rows)
        elif not options.own_head:
            raise SettingError("the target's LM head has another width than this drafter: set own_head=true")
        self.network.lm_head.requires_grad_(options.own_head)
        self._to_draft = torch.full((config.vocab_size,), -1)
        self._to_draft[ascending] = torch.arange(len(ascending))
        frequent = self._to_draft[draft_tokens[: options.num_frequent]]
        self._sampler = CandidateSampler(len(ascending), frequent, options.num_sampled)
        self._held_out = HeldOut(held_out, lm_head)
        self._scale = _scale_of(held_out, len(config.feature_layers))

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """Sum over the unrolled steps of decay ** step * soft cross-entropy over the step's candidates."""
        can_be_drafted = batch.answer_mask(1)  # of positions: the token after it
        own = self._to_draft[batch.tokens[:, 1:]]
        can_be_drafted[:, :-1] &= own >= 0
        candidates = self._sampler.draw(own[can_be_drafted[:, :-1]], generator)
        with torch.no_grad():
            logits = batch.features[can_be_drafted] @ self._rows[candidates.ids].T
            teacher = (logits + candidates.correction).softmax(-1)
        at = can_be_drafted.flatten().cumsum(0).view_as(can_be_drafted) - 1  # rows of `teacher`
        rows, total = self.network.lm_head.weight[candidates.ids], torch.zeros(())
        for step, hidden in enumerate(unroll(self.network, batch, self.options.num_steps, self._scale)):
            mask = _has_loss(batch, step) & can_be_drafted[:, 1 + step :]
            wanted = teacher[at[:, 1 + step :][mask]]
            logits = self.network.norm(hidden[mask]) @ rows.T + candidates.correction
            step_loss = soft_cross_entropy(logits, wanted) if len(wanted) else 0 * hidden.sum()
            total = total + self.options.decay**step * step_loss
        return total

    def fold(self) -> None:
        """Let `fc` read features as the target gives them; while training, it reads them divided by their size."""
        self.network.fc.weight.data.div_(self._scale)

    def unfold(self) -> None:
        """Undo `fold`: what a finished drafter needs to be trained on."""
        self.network.fc.weight.data.mul_(self._scale)

    def evaluate(self) -> dict[str, float]:
        """Top-1 agreement with the target's argmax on held-out answers at depths 1, 2 and 3."""
        accuracy = self.depth_agreement(num_depths=3, num_batches=5)
        expected = 1 + accuracy[0] * (1 + accuracy[1] * (1 + accuracy[2]))
        return {f"depth_{depth + 1}": value for depth, value in enumerate(accuracy)} | {"score": expected}

    @torch.inference_mode()
    def depth_agreement(self, num_depths: int, num_batches: int | None = None) -> list[float]:
        """Share of right first guesses at each depth, given that all shallower ones were right: as in drafting."""
        hits, counts = torch.zeros(num_depths), torch.zeros(num_depths)
        for batch, best in self._held_out.pairs(num_batches):
            alive: Tensor | None = None
            for depth, hidden in enumerate(unroll(self.network, batch, num_depths, self._scale)):
                considered = _has_loss(batch, depth)
                if alive is not None:
                    considered &= alive[:, : considered.shape[1]]
                guesses = self.network.to_target(self.network.logits(hidden).argmax(-1))
                alive = considered & (guesses == best[:, 1 + depth :])
                hits[depth] += alive.sum()
                counts[depth] += considered.sum()
        return (hits / counts.clamp(min=1)).tolist()


def _scale_of(data: FeatureSet, num_layers: int) -> Tensor:
    """[F] mean size of each layer's states: late ones are ten times as large as early ones, a few a thousand times."""
    assert data.layers is not None
    sizes = np.abs(data.layers[:4096].astype("float32")).reshape(-1, num_layers, data.layers.shape[1] // num_layers)
    return torch.from_numpy(sizes.mean(axis=(0, 2))).repeat_interleave(sizes.shape[2])


def _has_loss(batch: Batch, step: int) -> Tensor:
    """bool [B, T - 1 - step]: the prediction of this row and step speaks of an answer token that exists."""
    return batch.answer_mask(2 + step)[:, : batch.tokens.shape[1] - 1 - step]
