"""A device has a name, and peaks of the right order."""

import torch

from explorer.devices import device_name, measure_peaks


def test_the_processor_has_a_name() -> None:
    assert device_name(torch.device("cpu")).strip()


def test_peaks_are_what_such_machines_reach() -> None:
    peaks = measure_peaks(torch.device("cpu"), torch.float32)
    assert 1e8 < peaks.bandwidth < 1e13 and 1e8 < peaks.rate < 1e15
