"""Recipe: EAGLE-3's drafter, trained by what it will meet when it drafts: its own features, several steps deep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter
from explorer.models.eagle_layer import DraftCache
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.teacher import HeldOut, soft_cross_entropy, top_tokens


@dataclass(frozen=True)
class Eagle3Options:
    """num_steps: unrolled steps, the first on true features (the authors' recipe: 7; a tree of depth d reaches d + 1).

    decay: weight of a step's loss over that of the one before.
    """

    num_steps: int = 4
    decay: float = 0.8


class Eagle3Recipe:
    """Soft cross-entropy on tokens at every step of the training-time test (EAGLE-3, arXiv 2503.01840, section 3.2).

    Nothing asks that features resemble the target's. Positions whose best token the drafter cannot propose have no
    loss. The LM head begins as the target's rows of the draft vocabulary, where it is as wide.
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
        """draft_tokens: int64 [draft_vocab] target ids the drafter may propose, all of them or ``draft_vocab_size``."""
        self.options = options
        self.network = Eagle3Drafter(config)
        ascending = draft_tokens.sort().values
        if config.draft_vocab_size is not None:
            self.network.d2t.copy_(ascending - torch.arange(len(ascending)))
        self.network.bind(embedding)
        self._lm_head, self._rows = lm_head, lm_head[ascending]
        if self._rows.shape == self.network.lm_head.weight.shape:
            self.network.lm_head.weight.data.copy_(self._rows)
        self._is_drafted = torch.zeros(config.vocab_size, dtype=torch.bool)
        self._is_drafted[ascending] = True
        self._held_out = HeldOut(held_out, lm_head)
        self._scale = _scale_of(held_out, len(config.feature_layers))

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """Sum over the unrolled steps of decay ** step * soft cross-entropy over the draft vocabulary."""
        can_be_drafted = self._can_be_drafted(batch)
        total = torch.zeros(())
        for step, hidden in enumerate(unroll(self.network, batch, self.options.num_steps, self._scale)):
            mask = _has_loss(batch, step) & can_be_drafted[:, 1 + step :]
            wanted = batch.features[:, 1 + step :][mask]
            if len(wanted) == 0:
                total = total + 0 * hidden.sum()
                continue
            teacher = (wanted @ self._rows.T).softmax(-1)
            total = total + self.options.decay**step * soft_cross_entropy(self.network.logits(hidden[mask]), teacher)
        return total

    def fold(self) -> None:
        """Let `fc` read features as the target gives them; while training, it reads them divided by their size."""
        self.network.fc.weight.data.div_(self._scale)

    def unfold(self) -> None:
        """Undo `fold`: what a finished drafter needs to be trained on."""
        self.network.fc.weight.data.mul_(self._scale)

    def _can_be_drafted(self, batch: Batch) -> Tensor:
        """bool [B, T]: of positions whose next token an answer has, whether the drafter knows the target's best one."""
        found = batch.answer_mask(1)  # the target's whole head is read nowhere else: it is the dearest product here
        found[found.clone()] = self._is_drafted[top_tokens(batch.features[found], self._lm_head, 1)[:, 0]]
        return found

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


def unroll(network: Eagle3Drafter, batch: Batch, num_steps: int, scale: Tensor | float = 1.0) -> Iterator[Tensor]:
    """Predicted hidden states of steps 0, 1, ..., each [B, T - 1 - step, H], as drafting would make them at every row.

    Row t reads token t + 1 with the true feature t in step 0, and token t + 1 + step with its own last prediction
    after that. It sees the true pairs up to t and its own later ones: what a draft that starts there sees. The
    prediction speaks of token t + 2 + step. scale: what true features are divided by, [F] or one number.
    """
    hidden, cache = network.combine(batch.layers[:, :-1] / scale), DraftCache()
    num_pairs = hidden.shape[1]
    own = torch.eye(num_pairs, dtype=torch.bool)
    mask = torch.ones_like(own).tril()
    for step in range(min(num_steps, num_pairs)):
        num_rows = num_pairs - step
        if step:
            mask = torch.cat([mask, own[:, :num_rows]], dim=1)
        tokens = batch.tokens[:, 1 + step :]
        positions = torch.arange(step, num_pairs)[None].expand_as(tokens)
        hidden = network.predict(tokens, hidden[:, :num_rows], positions, mask[None, None, :num_rows], cache)
        yield hidden


def _scale_of(data: FeatureSet, num_layers: int) -> Tensor:
    """[F] mean size of each layer's states: late ones are ten times as large as early ones, a few a thousand times."""
    assert data.layers is not None
    sizes = np.abs(data.layers[:4096].astype("float32")).reshape(-1, num_layers, data.layers.shape[1] // num_layers)
    return torch.from_numpy(sizes.mean(axis=(0, 2))).repeat_interleave(sizes.shape[2])


def _has_loss(batch: Batch, step: int) -> Tensor:
    """bool [B, T - 1 - step]: the prediction of this row and step speaks of an answer token that exists."""
    return batch.answer_mask(2 + step)[:, : batch.tokens.shape[1] - 1 - step]
