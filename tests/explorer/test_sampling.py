"""From logits to probabilities to a token: transformers' warpers, one seed, no impossible token."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from explorer.config import Sampling
from explorer.sampling import Sampler, best_tokens


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=40, unique=True))
def test_greedy_takes_the_largest_logit(logits: list[int]) -> None:
    sampler = Sampler(Sampling())
    row = torch.tensor(logits, dtype=torch.float32)
    assert sampler.choose(row) == logits.index(max(logits))
    assert sampler.warp(row).tolist() == [float(value == max(logits)) for value in logits]


def test_equal_logits_always_give_the_same_token() -> None:
    logits = torch.zeros(50)
    logits[[7, 31]] = 1.0
    assert {Sampler(Sampling()).choose(logits) for _ in range(5)} == {7}


@pytest.mark.parametrize("temperature", [0.3, 0.8, 1.0, 2.5])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (5, 1.0), (0, 0.7), (9, 0.6), (500, 0.01), (1, 0.5)])
def test_warped_probabilities_are_those_of_transformers(temperature: float, top_k: int, top_p: float) -> None:
    logits = torch.randn(6, 200, generator=torch.Generator().manual_seed(1)) * 3
    logits[2] = logits[2].round()  # ties at the edges of both filters
    scores = TemperatureLogitsWarper(temperature)(None, logits)
    scores = TopKLogitsWarper(top_k)(None, scores) if top_k else scores
    scores = TopPLogitsWarper(top_p)(None, scores) if top_p < 1 else scores
    ours = Sampler(Sampling(temperature, top_p, top_k)).warp(logits)
    assert torch.equal(ours, scores.softmax(dim=-1))
    assert torch.equal(Sampler(Sampling(temperature, top_p, top_k)).warp(logits[4]), ours[4])  # one row alone


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    st.floats(0.01, 0.999),
    st.integers(0, 8),
)
def test_edges_between_equal_logits_are_those_of_transformers(logits: list[int], top_p: float, top_k: int) -> None:
    row = torch.tensor([logits], dtype=torch.float32)
    scores = TopKLogitsWarper(top_k)(None, row) if top_k else row
    expected = TopPLogitsWarper(top_p)(None, scores).softmax(dim=-1)
    assert torch.equal(Sampler(Sampling(1.0, top_p, top_k)).warp(row), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_logits_are_warped_in_float32(dtype: torch.dtype) -> None:
    logits = torch.randn(30, generator=torch.Generator().manual_seed(2)).to(dtype)
    probs = Sampler(Sampling(0.7)).warp(logits)
    assert probs.dtype == torch.float32
    assert torch.equal(probs, (logits.float() / 0.7).softmax(dim=-1))


@pytest.mark.parametrize("temperature", [0.0, 2e-5, 1.0, 100.0])
def test_numbers_that_are_not_finite_still_give_a_distribution(temperature: float) -> None:
    inf, nan = float("inf"), float("nan")
    sampler = Sampler(Sampling(temperature, top_p=0.9, top_k=3))
    for row in ([nan, 1.0, 2.0, -inf], [inf, inf, 0.0, nan], [nan] * 4, [-inf] * 4):
        probs = sampler.warp(torch.tensor(row))
        assert float(probs.sum()) == pytest.approx(1)
        assert 0 <= sampler.draw(probs) < 4
    assert int(sampler.warp(torch.tensor([nan, 1.0, 9.0, -inf])).argmax()) == 2


def test_a_tiny_temperature_is_the_argmax() -> None:
    logits = torch.tensor([1e4, 1e4 - 0.1, -1e4])
    assert Sampler(Sampling(2e-5)).warp(logits).tolist() == [1.0, 0.0, 0.0]


def test_uniforms_come_from_the_seed_alone() -> None:
    torch.manual_seed(5)
    first = [Sampler(Sampling(1.0, seed=3)).uniform() for _ in range(2)]
    torch.manual_seed(6)
    sampler = Sampler(Sampling(1.0, seed=3))
    drawn = [sampler.uniform() for _ in range(1000)]
    assert first == [drawn[0]] * 2
    assert all(0 <= value < 1 for value in drawn)
    assert len(set(drawn)) == 1000
    assert Sampler(Sampling(1.0, seed=4)).uniform() != drawn[0]


def test_the_largest_seed_is_taken() -> None:
    assert 0 <= Sampler(Sampling(1.0, seed=2**63 - 1)).uniform() < 1


class _Fixed(Sampler):
    """Draws at a uniform of the test's choice."""

    def __init__(self, value: float) -> None:
        super().__init__(Sampling(1.0))
        self.value = value

    def uniform(self) -> float:
        return self.value


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 1), (0.24, 1), (0.25, 3), (0.99, 3), (1 - 2**-53, 3)])
def test_a_draw_inverts_the_cdf_and_never_takes_an_impossible_token(uniform: float, token: int) -> None:
    probs = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0])
    assert _Fixed(uniform).draw(probs) == token
    assert _Fixed(uniform).draw(probs * 0.3) == token  # unnormalised
    assert _Fixed(uniform).draw(probs.double() * 1e-300) == token


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30).filter(any), st.floats(0, 1, exclude_max=True))
def test_every_draw_is_possible(probs: list[float], uniform: float) -> None:
    assert probs[_Fixed(uniform).draw(torch.tensor(probs))] > 0


@pytest.mark.parametrize("probs", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_a_draw_from_nothing_is_refused(probs: list[float]) -> None:
    with pytest.raises(ValueError, match="nothing can be drawn"):
        Sampler(Sampling(1.0)).draw(torch.tensor(probs))


def test_draws_follow_the_distribution() -> None:
    sampler, probs = Sampler(Sampling(1.0, seed=11)), torch.tensor([0.5, 0.2, 0.0, 0.3])
    drawn = torch.bincount(torch.tensor([sampler.draw(probs) for _ in range(4000)]), minlength=4)
    assert drawn[2] == 0
    expected = probs * 4000
    chi_square = float(((drawn - expected) ** 2 / expected.clamp(min=1)).sum())
    assert chi_square < 13.8  # two degrees of freedom, 0.1 %


def test_choosing_draws_from_the_warped_row() -> None:
    logits = torch.tensor([5.0, 4.9, 0.0, -3.0])
    drawn = {seed: Sampler(Sampling(1.0, top_k=2, seed=seed)).choose(logits) for seed in range(40)}
    assert set(drawn.values()) == {0, 1}
    sampler = Sampler(Sampling(1.0, top_k=2, seed=7))
    assert sampler.draw(sampler.warp(logits)) == drawn[7]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_best_tokens_are_the_first_of_the_largest(dtype: torch.dtype) -> None:
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(0)).round().to(dtype)  # ties in every row
    assert best_tokens(logits) == logits.float().argmax(dim=-1).tolist()
    assert best_tokens(logits[:0]) == []
