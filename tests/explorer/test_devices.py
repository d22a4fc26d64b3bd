"""A device has a name."""

import torch

from explorer.devices import device_name


def test_the_processor_has_a_name() -> None:
    assert device_name(torch.device("cpu")).strip()
