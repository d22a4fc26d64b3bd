"""What the EAGLE methods share: how the drafter reads true features and how a level of drafts is forwarded.

The drafter pairs the feature of position i with the embedding of token i + 1 at position i. Its cache holds pairs of
true features only: what a draft appends is dropped before the next one. (EAGLE, arXiv 2401.15077, section 4.1.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from explorer.clock import Clock
from explorer.methods.base import Draft, Method
from explorer.sampling import Sampler
from explorer.verify import Verdict
from kernels.dispatch import pick

if TYPE_CHECKING:
    from explorer.models.eagle_layer import FeatureDrafter, PairCache
    from explorer.target import Target, TargetOutput


class EagleMethod(Method):
    """A method that drafts on features; subclasses choose the tree."""

    needs_drafter = True
    can_rest = True

    def __init__(self, target: Target, drafter: FeatureDrafter, settings: Any) -> None:
        from explorer.models.eagle_layer import DraftCache  # loaded already, with the drafter
        from explorer.models.fused import fuse
        from explorer.models.packed import is_packable, pack_linears

        super().__init__(target, drafter, settings)
        self.trained_context = drafter.config.max_position_embeddings
        if is_packable(target.lm_head):  # nothing is left to do where another run did it
            fuse(drafter, pick("tree_attention", target.backend, target.device), drafter.probe)
            pack_linears(drafter)
            drafter.flatten()
        self._head = self._choose_head()
        self._clock = Clock(target.device)
        self._cache: PairCache = DraftCache()
        self._tokens: list[int] = []  # tokens of the pairs not yet in the cache, the root to come
        self._features = torch.empty(0)  # [len(tokens) + 1, F] their true features
        self._waiting: tuple[list[int], Tensor] = [], torch.empty(0)  # both, of plain steps since the last draft

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Read all prompt pairs but the last, whose token is the first root."""
        self._clock.start()
        self._cache.truncate(0)
        features = self._true_features(output)
        with torch.inference_mode():
            if len(prompt_ids) > 1:
                self._extend(torch.tensor(prompt_ids[1:]), features[:-1])
        self._tokens, self._features = [], features[-1:]
        self._waiting = [], features[:0]
        return self._clock.lap()

    @torch.inference_mode()
    def draft(self, root: int) -> Draft:
        """One pass over the new true features, then the tree; predicted features leave the cache at the end."""
        self._clock.start()
        hidden = self._extend(torch.tensor([*self._tokens, root]), self._features)[-1]
        length = self._cache.length
        draft = self._grow(root, hidden)
        self._cache.truncate(length)
        return draft

    def rest(self, root: int) -> None:
        """The pair of the root waits with those before it for the next draft."""
        self._waiting = [*self._tokens, root], self._features

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """The accepted rows' true features pair with the tokens that follow them; the next root comes last."""
        tokens, features = self._waiting
        self._tokens = [*tokens, *verdict.accepted_tokens]
        self._features = torch.cat([features, self._true_features(output)[list(verdict.path)]])
        self._waiting = [], features[:0]

    @abstractmethod
    def _grow(self, root: int, hidden: Tensor) -> Draft:
        """The tree below ``root``, given the feature [H] predicted there; the clock runs since the first pass."""

    def _choose_head(self) -> Callable[[Tensor], Tensor]:
        """Predicted features [R, H] -> [R, draft vocabulary]: the target's LM head, or its rows of that vocabulary."""
        from explorer.models.packed import pack

        is_full = self.drafter.config.draft_vocab_size is None
        return self.target.head if is_full else pack(self.drafter.head_layer())

    def _true_features(self, output: TargetOutput) -> Tensor:
        """What the drafter reads of a pass of the target, [R, F]: its final hidden states."""
        return output.hidden

    def _read(self, features: Tensor) -> Tensor:
        """True features [R, F] as the drafter's layer takes them, [R, H]."""
        return features

    def _extend(self, tokens: Tensor, features: Tensor) -> Tensor:
        """Append pairs of true features [R, F] to the cache; returns their predicted features [R, H]."""
        positions = torch.arange(self._cache.length, self._cache.length + len(tokens))
        return self._forward(tokens, self._read(features), positions, None)

    def _forward_level(self, tokens: Tensor, features: Tensor, slots: Tensor, position: int) -> Tensor:
        """Predicted features [R, H] of drafts at one position.

        slots: [R, drafted + R] bool, which of the drafts so far, themselves last, each one sees; the prefix of true
        pairs is seen by all.
        """
        num_rows, num_drafted = slots.shape
        seen = self._cache.length + num_rows - num_drafted
        prefix = torch.ones(num_rows, seen, dtype=torch.bool, device=slots.device)
        positions = torch.full((num_rows,), position)
        return self._forward(tokens, features, positions, torch.cat([prefix, slots], dim=1))

    def _forward(self, tokens: Tensor, features: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        device = self.target.device
        hidden: Tensor = self.drafter(
            tokens.to(device), features, positions.to(device), None if mask is None else mask.to(device), self._cache
        )
        return hidden

    def _log_softmax(self, hidden: Tensor) -> Tensor:
        """[R, draft vocabulary] float32 log-probabilities after each predicted feature [R, H]."""
        logprobs: Tensor = self._head(hidden).float().log_softmax(dim=-1)
        return logprobs

    def _rank(self, logprobs: Tensor | None, token: int) -> int | None:
        """Rank of a target token in one row [draft vocabulary]; None where the drafter did not look, or cannot."""
        draft_id = self.drafter.to_draft(token)
        return None if logprobs is None or draft_id is None else int((logprobs > logprobs[draft_id]).sum())
