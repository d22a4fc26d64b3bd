"""Openings are seeded, varied, and sometimes absent."""

from __future__ import annotations

import random

from explorer.training.openings import choose_opening


def test_openings_vary_and_repeat_with_the_seed() -> None:
    first, second = random.Random(1), random.Random(1)
    drawn = [choose_opening(first) for _ in range(400)]
    assert drawn == [choose_opening(second) for _ in range(400)]
    assert len(set(drawn)) > 60
    assert 10 < drawn.count("") < 90
    assert all(text == text.strip() for text in drawn)
