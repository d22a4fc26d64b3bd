"""What a device calls itself, and what it can do at best."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence

import torch

from explorer.clock import Clock
from explorer.theory import Peaks

_READ_BYTES = 2**28  # far beyond any processor's own caches
_SIDE = 1024
_REPEATS = 3


def device_name(device: torch.device, places: Sequence[str] = ()) -> str:
    """The GPU's name or the CPU's model, with the places where decoder layers are kept, if these are several."""
    return _name(device) + (f", layers on {', '.join(places)}" if places else "")


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


@torch.inference_mode()
def measure_peaks(device: torch.device, dtype: torch.dtype) -> Peaks:
    """The best of a few readings of a large tensor and of a few square products in this dtype; about a second."""
    held = torch.ones(_READ_BYTES // torch.float32.itemsize, device=device)
    square = torch.ones(_SIDE, _SIDE, dtype=dtype, device=device)
    bandwidth = _READ_BYTES / _best_seconds(device, held.sum)
    return Peaks(bandwidth, 2 * _SIDE**3 / _best_seconds(device, lambda: square @ square))


def _best_seconds(device: torch.device, work: Callable[[], object]) -> float:
    clock, times = Clock(device), []
    for _ in range(_REPEATS + 1):  # the first warms up
        clock.start()
        work()
        times.append(clock.lap())
    return min(times[1:]) / 1000
