"""Milliseconds, measured so that work queued on a device counts where it was caused."""

from __future__ import annotations

import time

import torch


class Clock:
    """A stopwatch for one device: every reading waits for the device first."""

    def __init__(self, device: torch.device) -> None:
        self._is_cuda = device.type == "cuda"
        self._started = 0.0
        self.start()

    def _now(self) -> float:
        if self._is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    def start(self) -> None:
        """Begin a lap."""
        self._started = self._now()

    def lap(self) -> float:
        """Milliseconds since the last ``start`` or ``lap``; begins the next one."""
        now = self._now()
        elapsed, self._started = (now - self._started) * 1e3, now
        return elapsed
