"""What stands for a captured graph on a CPU: the computation itself, and the recording that the tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from explorer.models.graphs import call_again
from tests.support.captured import recorded


@pytest.mark.parametrize("capture", [call_again, recorded])
def test_a_repetition_reads_the_tensors_as_they_are_now(capture: Callable[..., Any]) -> None:
    numbers, held = torch.tensor([1.0, 2.0, 3.0]), torch.zeros(3)

    def work() -> torch.Tensor:
        held[1:].add_(numbers[1:])
        return (numbers * 2).sum() + held.sum()

    run = capture(work)
    held.zero_()
    numbers.copy_(torch.tensor([5.0, 6.0, 7.0]))
    assert float(run()) == 36.0 + 13.0
    assert held.tolist() == [0.0, 6.0, 7.0]
    assert float(run()) == 36.0 + 26.0


def test_a_recording_keeps_what_python_decided() -> None:
    """As a CUDA graph does: so a length that is a Python number shows as a wrong result in the tests."""
    numbers, length = torch.arange(5.0), 2
    run = recorded(lambda: numbers[:length].sum())
    length = 5
    numbers.fill_(1.0)
    assert float(run()) == 2.0


@pytest.mark.parametrize(
    "work",
    [
        lambda numbers: numbers[: int(numbers[0])],
        lambda numbers: numbers[numbers > 1],
        lambda numbers: numbers + torch.tensor([1.0, 2.0, 3.0]),
    ],
)
def test_a_recording_refuses_what_a_gpu_would(work: Callable[[torch.Tensor], torch.Tensor]) -> None:
    numbers = torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="capturing"):
        recorded(lambda: work(numbers))
