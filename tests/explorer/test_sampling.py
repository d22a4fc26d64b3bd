"""Choosing a token from one row of logits."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.config import Sampling
from explorer.sampling import Sampler


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=40, unique=True))
def test_greedy_takes_the_largest_logit(logits: list[int]) -> None:
    assert Sampler(Sampling()).choose(torch.tensor(logits, dtype=torch.float32)) == logits.index(max(logits))


def test_equal_logits_always_give_the_same_token() -> None:
    logits = torch.zeros(50)
    logits[[7, 31]] = 1.0
    assert {Sampler(Sampling()).choose(logits) for _ in range(5)} == {7}
