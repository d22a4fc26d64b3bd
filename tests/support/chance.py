"""How likely chance alone is to differ as much as counts do from probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor

MIN_EXPECTED = 5.0  # rarer outcomes are pooled, as the chi-square distribution wants it


def chance_of(outcomes: Iterable[int], probs: Tensor) -> float:
    """p-value of Pearson's chi-square test of ``outcomes`` against ``probs`` [V]; 0 where one was impossible."""
    counts = Counter(outcomes)
    if any(not probs[outcome] > 0 for outcome in counts):
        return 0.0
    num, pooled_seen, pooled_expected, statistic, num_bins = sum(counts.values()), 0, 0.0, 0.0, 0
    for outcome, prob in enumerate(probs.double().tolist()):
        expected = num * prob
        if expected < MIN_EXPECTED:
            pooled_seen, pooled_expected = pooled_seen + counts[outcome], pooled_expected + expected
            continue
        statistic += (counts[outcome] - expected) ** 2 / expected
        num_bins += 1
    if pooled_expected >= 1:
        statistic += (pooled_seen - pooled_expected) ** 2 / pooled_expected
        num_bins += 1
    if num_bins < 2:
        return 1.0
    half = torch.tensor([(num_bins - 1) / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(half[0], half[1]))
