"""Every way a sampled computation can go, with its probability: exact where a simulation would only be likely.

The computation runs once per branch on a sampler that follows a script. A uniform decides an acceptance test, so it has
two outcomes, and their probabilities are those that the verdict's draws report; a draw has one outcome per token.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from explorer.config import Sampling
from explorer.sampling import Sampler
from explorer.verify import Draw

ACCEPT, REJECT = 0.0, 1 - 2**-53  # the extreme uniforms

Law = dict[tuple[int, ...], float]


class _Scripted(Sampler):
    """Takes the options of ``script``, then the first one at every further choice; notes what there was to choose."""

    def __init__(self, sampling: Sampling, script: tuple[int, ...]) -> None:
        super().__init__(sampling)
        self._script = script
        self.taken: list[int] = []
        self.num_options: list[int] = []
        self.draw_probability = 1.0
        self.is_test_accepted: list[bool] = []

    def _choose(self, num_options: int) -> int:
        at = len(self.taken)
        self.taken.append(self._script[at] if at < len(self._script) else 0)
        self.num_options.append(num_options)
        return self.taken[-1]

    def uniform(self) -> float:
        option = self._choose(2)
        self.is_test_accepted.append(option == 0)
        return (ACCEPT, REJECT)[option]

    def draw(self, probs: Tensor) -> int:
        possible = probs.nonzero().flatten().tolist()
        token = int(possible[self._choose(len(possible))])
        self.draw_probability *= float(probs[token] / probs.sum())
        return token


def branches(
    run: Callable[[Sampler], tuple[Sequence[int], Sequence[Draw]]], sampling: Sampling
) -> Iterator[tuple[float, Sequence[int]]]:
    """(probability, tokens) of every branch of ``run``, which returns its tokens and the tests it made, in order."""
    pending: list[tuple[int, ...]] = [()]
    while pending:
        script = pending.pop()
        sampler = _Scripted(sampling, script)
        tokens, draws = run(sampler)
        for at in range(len(script), len(sampler.taken)):
            pending += [(*sampler.taken[:at], other) for other in range(1, sampler.num_options[at])]
        weight = sampler.draw_probability
        for wanted, draw in zip(sampler.is_test_accepted, draws, strict=True):
            # Asked to accept what has no chance, or to reject what is certain, the rule does the other: no branch.
            weight *= 0.0 if draw.accepted != wanted else draw.prob if wanted else 1 - draw.prob
        if weight:
            yield weight, tokens


def completed_law(
    outcomes: Iterator[tuple[float, Sequence[int]]], after: Callable[[tuple[int, ...]], Tensor], length: int
) -> Law:
    """The law of the first ``length`` tokens; outcomes that are shorter go on as ``after`` (prefix -> [V]) says."""
    law: Law = {}
    for weight, tokens in outcomes:
        shown = tuple(tokens[:length])
        for ending, prob in exact_law(after, length - len(shown), shown).items():
            law[ending] = law.get(ending, 0.0) + weight * prob
    return law


def exact_law(after: Callable[[tuple[int, ...]], Tensor], length: int, prefix: tuple[int, ...] = ()) -> Law:
    """The law of ``length`` further tokens sampled one by one from ``after`` (prefix -> [V])."""
    law: Law = {prefix: 1.0}
    for _ in range(length):
        law = {
            (*tokens, token): weight * prob
            for tokens, weight in law.items()
            for token, prob in enumerate(after(tokens).double().tolist())
            if prob
        }
    return law


def largest_difference(one: Law, other: Law) -> float:
    """The largest difference of two laws over all their outcomes."""
    return max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in itertools.chain(one, other))


def random_target(seed: int, vocab: int = 5, scale: float = 2.0) -> Callable[[tuple[int, ...]], Tensor]:
    """Prefix -> [V] logits: a made-up target, different after every prefix and always the same after one."""
    known: dict[tuple[int, ...], Tensor] = {}

    def logits(prefix: tuple[int, ...]) -> Tensor:
        if prefix not in known:
            generator = torch.Generator().manual_seed(hash((seed, *prefix)) % 2**63)
            known[prefix] = torch.randn(vocab, generator=generator, dtype=torch.float64) * scale
        return known[prefix]

    return logits
