"""Every output token with what the draft made of it, against the record; and the least entropy of a short list."""

from __future__ import annotations

import math

import pytest

from explorer.spots import ACCEPTED, entropy_at_least, spots
from tests.support.traces import make_trace


@pytest.mark.parametrize("method", ["eagle2", "medusa", "prompt_lookup", "lookahead"])
def test_each_complete_pass_gives_its_tokens_in_order(method: str) -> None:
    trace = make_trace(method, 14)
    found = spots(trace)
    whole = [step for step in trace.steps if not step.is_cut]
    assert [spot.token for spot in found] == [token for step in whole for token in step.emitted]
    assert [spot.index for spot in found] == list(range(1, len(found) + 1))
    assert all(trace.output.token_ids[spot.index] == spot.token for spot in found)
    assert sum(spot.ending == ACCEPTED for spot in found) == trace.stats.num_accepted_draft_tokens
    assert sum(spot.ending != ACCEPTED for spot in found) == trace.stats.num_steps


def test_entropy_is_that_of_the_place_where_the_token_was_chosen() -> None:
    trace = make_trace("eagle2", 8)
    for spot in spots(trace):
        step = trace.steps[spot.step]
        row = step.path[step.emitted.index(spot.token)] if step.emitted.count(spot.token) == 1 else None
        top = None if row is None else step.tree.target_top[row]
        if top is not None:
            assert top[0][0] == spot.token
            assert spot.entropy == entropy_at_least(top)


@pytest.mark.parametrize(
    ("probs", "bits"),
    [
        ([1.0], 0.0),
        ([0.5, 0.5], 1.0),
        ([0.25] * 4, 2.0),
        ([0.5, 0.25], 1.5),  # the rest is one more token of 0.25
        ([0.25], 2.0),  # and here three more
        ([0.4, 0.4], 2 * -0.4 * math.log2(0.4) - 0.2 * math.log2(0.2)),
        ([], 0.0),
        ([0.0], 0.0),
    ],
)
def test_the_rest_is_spread_as_little_as_possible(probs: list[float], bits: float) -> None:
    assert entropy_at_least(list(enumerate(probs))) == pytest.approx(bits)


def test_it_never_exceeds_the_entropy_of_the_whole_distribution() -> None:
    weights = [1 / (rank + 1) for rank in range(50)]
    probs = [weight / sum(weights) for weight in weights]
    whole = -sum(prob * math.log2(prob) for prob in probs)
    assert 0 < entropy_at_least(list(enumerate(probs[:5]))) < whole


def test_rounding_above_one_is_no_negative_entropy() -> None:
    assert entropy_at_least([(1, 1.000009)]) == 0
