"""Comparing a run with plain decoding, token by token."""

import pytest

from explorer.run_trace import Lane, find_divergence
from explorer.trace import Divergence

GAPS = [3.0, 2.0, 0.001]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([5, 6, 7], None),
        ([5, 6, 8], Divergence(2, 8, 7, 0.001)),
        ([9, 6, 7], Divergence(0, 9, 5, 3.0)),
        ([5, 6], Divergence(2, None, 7, 0.001)),
        ([5, 6, 7, 8], Divergence(3, 8, None, None)),
    ],
)
def test_first_divergence(output, expected):
    assert find_divergence(output, [5, 6, 7], GAPS) == expected


def test_the_first_token_counts_on_no_side():
    assert Lane([1, 2, 3], GAPS, [10.0, 30.0]).speed == pytest.approx(50.0)
    assert Lane([1], [1.0], []).speed is None
