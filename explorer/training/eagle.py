"""Recipe: EAGLE's drafter, one decoder layer that predicts the target's next hidden state and next token."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from explorer.models.eagle_layer import EagleConfig, EagleDrafter
from explorer.training.candidates import CandidateSampler
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.teacher import HeldOut, soft_cross_entropy


@dataclass(frozen=True)
class EagleOptions:
    """Weights of the loss and of the disturbances.

    noise: width of the uniform noise on input features, in standard deviations of the features. own_share: share of
    the input features that are the drafter's own prediction, as in drafting, once `own_from` of the run is over.
    """

    feature_weight: float = 1.0
    token_weight: float = 0.5
    noise: float = 0.2
    own_share: float = 0.3
    own_from: float = 0.3
    num_frequent: int = 1024
    num_sampled: int = 512


class EagleRecipe:
    """Smooth-L1 on features plus soft cross-entropy on tokens (EAGLE section 4.2), over a reduced draft vocabulary.

    Pair t is (embedding of token t + 1, feature t) at position t; it predicts feature t + 1, whose LM head output is
    the target's distribution for token t + 2.
    """

    def __init__(
        self,
        config: EagleConfig,
        draft_tokens: Tensor,
        embedding: Tensor,
        lm_head: Tensor,
        held_out: FeatureSet,
        options: EagleOptions,
    ) -> None:
        """draft_tokens: int64 [draft_vocab] target ids the drafter may propose, the most frequent first.

        All of them where ``config`` has no draft vocabulary.
        """
        self.options = options
        self.network = EagleDrafter(config)
        ascending = draft_tokens.sort().values
        if config.draft_vocab_size is not None:
            self.network.d2t.copy_(ascending - torch.arange(len(ascending)))
        self.network.bind(embedding, lm_head)
        self._to_draft = torch.full((config.vocab_size,), -1)
        self._to_draft[ascending] = torch.arange(len(ascending))
        frequent = self._to_draft[draft_tokens[: options.num_frequent]]
        self._sampler = CandidateSampler(len(ascending), frequent, options.num_sampled)
        self._scale = float(held_out.features[:4096].astype("float32").std())
        self._held_out = HeldOut(held_out, lm_head)

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """feature_weight * smooth-L1 + token_weight * soft cross-entropy, both over answer positions."""
        tokens, inputs, targets = batch.tokens[:, 1:], batch.features[:, :-1], batch.features[:, 1:]
        positions = torch.arange(tokens.shape[1])[None].expand_as(tokens)
        noisy = inputs + (torch.rand(inputs.shape, generator=generator) - 0.5) * self.options.noise * self._scale
        if progress >= self.options.own_from and self.options.own_share > 0:
            noisy = self._with_own(tokens, inputs, noisy, positions, generator)
        mask = batch.answer_mask(2)[:, :-1]
        predicted = self.network.predict(tokens, noisy, positions)[mask]
        wanted = targets[mask]
        feature_loss = functional.smooth_l1_loss(predicted / self._scale, wanted / self._scale)
        return self.options.feature_weight * feature_loss + self.options.token_weight * self._token_loss(
            predicted, wanted, tokens[mask], generator
        )

    def _with_own(
        self, tokens: Tensor, inputs: Tensor, noisy: Tensor, positions: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Replace some features by what the drafter itself predicts there: what it will read when it drafts deeper."""
        with torch.no_grad():
            own = self.network.predict(tokens, inputs, positions)
        # The prediction of pair t stands for feature t + 1, so it replaces the input of the next pair.
        shifted = torch.cat([inputs[:, :1], own[:, :-1]], dim=1)
        is_own = torch.rand(tokens.shape, generator=generator) < self.options.own_share
        return torch.where(is_own[..., None], shifted, noisy)

    def _token_loss(self, predicted: Tensor, wanted: Tensor, tokens: Tensor, generator: torch.Generator) -> Tensor:
        own = self._to_draft[tokens]
        candidates = self._sampler.draw(own[own >= 0], generator)
        rows = self.network.draft_head[candidates.ids]
        with torch.no_grad():
            teacher = (wanted @ rows.T + candidates.correction).softmax(-1)
        return soft_cross_entropy(predicted @ rows.T + candidates.correction, teacher)

    def evaluate(self) -> dict[str, float]:
        """Top-1 agreement with the target's argmax on held-out answers at depth 1 and, on own features, 2 and 3."""
        accuracy = self.depth_agreement(num_depths=3, num_batches=5)
        expected = 1 + accuracy[0] * (1 + accuracy[1] * (1 + accuracy[2]))
        return {f"depth_{depth + 1}": value for depth, value in enumerate(accuracy)} | {"score": expected}

    @torch.inference_mode()
    def depth_agreement(self, num_depths: int, num_batches: int | None = None) -> list[float]:
        """Share of right first guesses at each depth, given that all shallower ones were right.

        At depth d every feature from the last d - 1 positions is the drafter's own; earlier ones are approximated by
        own features as well, which is slightly harder than drafting, where the accepted prefix has true ones.
        """
        hits = torch.zeros(num_depths)
        counts = torch.zeros(num_depths)
        for batch, best in self._held_out.pairs(num_batches):
            features, alive = batch.features[:, :-1], None
            tokens = batch.tokens[:, 1:]
            positions = torch.arange(tokens.shape[1])[None].expand_as(tokens)
            for depth in range(num_depths):
                predicted = self.network.predict(tokens, features, positions)
                guesses = self.network.to_target(self.network.logits(predicted).argmax(-1))
                right = guesses == best[:, 1:]
                considered = batch.answer_mask(2)[:, :-1]
                if alive is not None:
                    considered = considered & torch.cat([torch.zeros_like(alive[:, :1]), alive[:, :-1]], dim=1)
                alive = right & considered
                hits[depth] += alive.sum()
                counts[depth] += considered.sum()
                features = torch.cat([batch.features[:, :1], predicted[:, :-1]], dim=1)
        return (hits / counts.clamp(min=1)).tolist()
