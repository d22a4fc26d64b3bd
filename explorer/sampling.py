"""How tokens are drawn: the one place that turns logits into probabilities and probabilities into a token.

All randomness of a run comes from one generator, on the CPU, so that a seed means the same on every device.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from explorer.config import Sampling

_LARGE = 1e30  # stands for infinity; divided by the smallest temperature it is still a float32


def best_tokens(logits: Tensor) -> list[int]:
    """The argmax of each row of logits [N, V], the first of equal ones."""
    if logits.device.type == "cpu" and logits.dtype == torch.float32:  # numpy is about nine times faster there
        found: list[int] = logits.numpy().argmax(axis=-1).tolist()
        return found
    return logits.argmax(dim=-1).tolist()


class Sampler:
    """Chooses tokens by one Sampling for one run; ``generator`` holds the state of its randomness."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.generator = torch.Generator().manual_seed(sampling.seed)

    @property
    def is_random(self) -> bool:
        """True where tokens are drawn: a drafter may sample then. Greedy decoding and typical acceptance draw none."""
        return self.sampling.rule == "rejection" and not self.sampling.is_greedy

    def warp(self, logits: Tensor) -> Tensor:
        """[..., V] logits to [..., V] float32 probabilities: temperature, then top_k, then top_p; greedy: one-hot.

        The order and the edges (ties with the last of top_k stay, the token that crosses top_p stays) are those of
        transformers' generation/logits_process.py: TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper.
        Numbers that are not finite count as very large or very small, so that a broken drafter still gives a
        distribution; any is safe to propose from, because the acceptance rule corrects it.
        """
        scores = torch.nan_to_num(logits.float(), nan=-_LARGE, posinf=_LARGE, neginf=-_LARGE)
        if self.sampling.is_greedy:
            best = scores.argmax(dim=-1, keepdim=True)
            return torch.zeros_like(scores).scatter_(-1, best, 1.0)
        scores = scores / self.sampling.temperature
        top_k, top_p = min(self.sampling.top_k, scores.shape[-1]), self.sampling.top_p
        if top_k:
            last = scores.topk(top_k, dim=-1).values[..., -1:]
            scores = scores.masked_fill(scores < last, -torch.inf)
        if top_p < 1:
            scores = scores.masked_fill(_outside_nucleus(scores, top_p), -torch.inf)
        return scores.softmax(dim=-1)

    def uniform(self) -> float:
        """One number in [0, 1), float64."""
        return float(torch.rand((), generator=self.generator, dtype=torch.float64))

    def draw(self, probs: Tensor) -> int:
        """One token from probabilities [V], which need not sum to 1 exactly: the inverse of their CDF at a uniform.

        Never a token of probability 0. Raises ValueError where there is no mass at all.
        """
        cdf = probs.cpu().double().cumsum(dim=-1)
        total = float(cdf[-1])
        if not 0 < total < torch.inf:
            raise ValueError(f"nothing can be drawn from probabilities that sum to {total}")
        token = int(torch.searchsorted(cdf, torch.tensor(self.uniform() * total, dtype=torch.float64), right=True))
        return min(token, int(torch.searchsorted(cdf, cdf[-1])))  # rounding never passes the last possible token

    def draw_distinct(self, probs: Tensor, count: int) -> list[int]:
        """Up to ``count`` different tokens from [V], one after the other without replacement.

        Fewer where fewer are possible: a filtered distribution may hold less than a tree has room for.
        """
        rest, tokens = probs.cpu().double().clone(), list[int]()
        for _ in range(min(count, int((rest > 0).sum()))):
            tokens.append(self.draw(rest))
            rest[tokens[-1]] = 0
        return tokens

    def choose(self, logits: Tensor) -> int:
        """The target's own next token from one row of logits [V]: drawn from the warped row, else the argmax."""
        return self.draw(self.warp(logits)) if self.is_random else int(logits.argmax())


def _outside_nucleus(scores: Tensor, top_p: float) -> Tensor:
    """[..., V] True for the tokens that top_p takes out: the least likely ones.

    On a CPU, sorting values without their indices and comparing with the last one kept takes a third of the time. Only
    where equal scores lie on both sides of the edge do indices decide, and then as transformers' own sort puts them.
    """
    if scores.device.type == "cpu":
        ascending = torch.from_numpy(np.sort(scores.numpy()))
        num_cut = _is_cut(ascending, top_p).sum(dim=-1, keepdim=True)
        is_below = scores < ascending.gather(-1, num_cut)
        if torch.equal(is_below.sum(dim=-1, keepdim=True), num_cut):
            return is_below
    ascending, order = scores.sort(dim=-1)
    is_cut = _is_cut(ascending, top_p)
    return is_cut.scatter(-1, order, is_cut)


def _is_cut(ascending: Tensor, top_p: float) -> Tensor:
    """[..., V] of sorted scores, which top_p takes out; the best one always stays."""
    is_cut = ascending.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
    is_cut[..., -1] = False
    return is_cut
