"""Speculative decoding with a draft model: a small causal LM writes a chain, the target verifies it in one pass.

Y. Leviathan et al., arXiv 2211.17192, section 2; C. Chen et al., arXiv 2302.01318. The draft model is a target of its
own: the same passes, the same cache. It reads each of its guesses but the last; what was not accepted is rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from explorer.clock import Clock
from explorer.config import Sampling, setting
from explorer.methods.base import Draft, Method
from explorer.sampling import Sampler
from explorer.tree import DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.target import Target, TargetOutput

_NUM_SHOWN = 8  # favourites of each of the draft model's distributions that the record keeps
_ROOM = 256  # cache rows beyond the prompt that the first allocation leaves; more are made when needed


@dataclass(frozen=True)
class DraftModelSettings:
    """How far it runs ahead."""

    gamma: int = setting(5, kind="int", min=1, max=64, step=1, help="tokens drafted one after another")


class DraftModel(Method):
    """Drafts a chain: the draft model's favourite tokens, at a temperature tokens it draws as the target would."""

    name = "draft_model"
    label = "Draft model"
    needs_drafter = True
    can_rest = True
    Settings = DraftModelSettings

    def __init__(self, target: Target, drafter: Target, settings: DraftModelSettings) -> None:
        super().__init__(target, drafter, settings)
        if drafter.context_limit < target.context_limit:
            self.notices.append(
                f"the draft model reads {drafter.context_limit} tokens, the target {target.context_limit}: "
                "from there on nothing is drafted"
            )
        self._num_ids = min(drafter.vocab_size, target.vocab_size)  # beyond are ids that pad one of them
        self._clock = Clock(target.device)
        self._sampler = Sampler(Sampling())
        self._unread: list[int] = []  # tokens of the text that the draft model has not read yet
        self._num_read = 0  # tokens of the text in its cache when the last draft began

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """The draft model's own prompt pass."""
        self._clock.start()
        self._sampler, self._unread = sampler, []
        self.drafter.start(len(prompt_ids) + _ROOM)
        if len(prompt_ids) < self.drafter.context_limit:
            self._read(prompt_ids)
        return self._clock.lap()

    def draft(self, root: int) -> Draft:
        """Up to ``gamma`` passes, each over what is new: accepted tokens and the root first, then each guess."""
        self._clock.start()
        self._unread.append(root)
        self._num_read = self.drafter.length
        length = min(self.settings.gamma, self.drafter.context_limit - self.target.length)
        tokens, probs = [root], [float("nan")]
        rows, dists, passes_ms = list[Tensor](), list[Tensor](), list[float]()
        new: Sequence[int] = self._unread
        for _ in range(length):
            rows.append(self._read(new))
            token, prob = self._choose(rows[-1], dists)
            tokens.append(token)
            probs.append(prob)
            new = tokens[-1:]
            passes_ms.append(self._clock.lap())

        def rank_of(row: int, token: int) -> int | None:
            is_known = row < len(rows) and token < self._num_ids
            return int((rows[row] > rows[row][token]).sum()) if is_known else None

        return Draft(
            DraftTree.from_lists(tokens, range(-1, len(tokens) - 1), draft_probs=probs),
            draft_dists=torch.stack(dists) if dists else None,
            dist_rows=range(len(dists)),
            passes_ms=passes_ms,
            rank_of=rank_of,
            read_extra=lambda: {"draft_tops": _favourites(dists or [row.float().softmax(dim=-1) for row in rows])},
            plain_reason="fallback" if not rows else None,
        )

    def rest(self, root: int) -> None:
        """The root is read with the next draft."""
        self._unread.append(root)
        self._num_read = self.drafter.length

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """Forget the guesses that failed; all of them accepted, the last one is still to be read."""
        text = [*self._unread, *verdict.accepted_tokens]
        kept = min(self.drafter.length, self._num_read + len(text))
        self.drafter.roll_back(kept)
        self._unread = text[kept - self._num_read :]

    def _read(self, tokens: Sequence[int]) -> Tensor:
        """Append tokens to the draft model's text; returns its logits [ids both know] after the last."""
        last_id = self.drafter.vocab_size - 1  # a padding id of the target's: any token does for a guess
        logits: Tensor = self.drafter.prefill([min(token, last_id) for token in tokens]).logits[0, : self._num_ids]
        return logits

    def _choose(self, logits: Tensor, dists: list[Tensor]) -> tuple[int, float]:
        """(token, its draft probability) by the run's sampling; a distribution that was drawn from joins ``dists``."""
        if self._sampler.sampling.is_greedy:
            token = int(logits.argmax())
            return token, float(logits.float().softmax(dim=-1)[token])
        dist = self._sampler.warp(logits)
        token = self._sampler.draw(dist)
        dists.append(functional.pad(dist, (0, self.target.vocab_size - self._num_ids)))
        return token, float(dist[token])


def _favourites(dists: Sequence[Tensor]) -> list[list[list[int | float]]]:
    """The likeliest tokens of each distribution, [token, probability as the drafter used it] each."""
    tops = [dist.topk(min(_NUM_SHOWN, len(dist))) for dist in dists]
    pairs = [zip(top.indices.tolist(), top.values.tolist(), strict=True) for top in tops]
    return [[[token, float(f"{prob:.9g}")] for token, prob in each] for each in pairs]
