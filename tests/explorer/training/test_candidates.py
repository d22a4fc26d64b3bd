"""Sampled candidates: what is certain is in, and the estimate of the full softmax sum is unbiased."""

from __future__ import annotations

import math

import pytest
import torch

from explorer.training.candidates import CandidateSampler


def test_certain_tokens_are_in_once_and_uncorrected() -> None:
    sampler = CandidateSampler(100, torch.tensor([3, 7]), num_sampled=10)
    drawn = sampler.draw(torch.tensor([[7, 50], [50, 99]]), torch.Generator().manual_seed(0))
    assert drawn.ids.tolist() == sorted(set(drawn.ids.tolist()))
    correction = dict(zip(drawn.ids.tolist(), drawn.correction.tolist(), strict=True))
    assert [correction[token] for token in (3, 7, 50, 99)] == [0.0] * 4
    others = [value for token, value in correction.items() if token not in (3, 7, 50, 99)]
    assert others == pytest.approx([math.log(98 / 10)] * len(others))
    assert 8 <= len(others) <= 10


def test_the_sum_of_exponentials_is_unbiased() -> None:
    logits = torch.randn(100, generator=torch.Generator().manual_seed(1))
    sampler = CandidateSampler(100, torch.arange(5), num_sampled=20)
    nothing = torch.zeros(0, dtype=torch.int64)
    sums = []
    for seed in range(800):
        drawn = sampler.draw(nothing, torch.Generator().manual_seed(seed))
        sums.append((logits[drawn.ids] + drawn.correction).exp().sum())
    assert torch.stack(sums).mean().item() == pytest.approx(logits.exp().sum().item(), rel=0.03)


def test_all_frequent_is_the_full_vocabulary() -> None:
    drawn = CandidateSampler(10, torch.arange(10), 5).draw(torch.tensor([2]), torch.Generator().manual_seed(0))
    assert drawn.ids.tolist() == list(range(10))
    assert drawn.correction.tolist() == [0.0] * 10
