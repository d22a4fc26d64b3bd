"""Whether the server is well, as plain values: what is here, what is loaded, what the device does; no prompts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.config import DEFAULT_TARGET
from explorer.service.served_runner import ServedRunner
from explorer.target_presets import TargetPreset


@dataclass(frozen=True)
class Health:
    """Asks the parts when it is asked. num_queued: runs that have not reached the runner yet."""

    runner: ServedRunner
    targets: Sequence[TargetPreset]
    num_queued: Callable[[], int]
    started: float = field(default_factory=time.monotonic)

    def report(self) -> dict[str, Any]:
        """``status`` is ok, starting (runs would wait for the engine or the target) or stopping (they are refused)."""
        state = self.runner.state()
        targets = [{"name": preset.name, "is_here": is_here(preset)} for preset in self.targets]
        return {
            "status": self._status(state.is_loaded and targets[0]["is_here"] is not False),
            "uptime_s": round(time.monotonic() - self.started),
            "runner": "loaded" if state.is_loaded else "loading",
            "device": {"is_busy": state.is_busy, "num_waiting": state.num_waiting + self.num_queued()},
            "targets": targets,
        }

    def _status(self, is_ready: bool) -> str:
        if self.runner.is_stopping:
            return "stopping"
        return "ok" if is_ready else "starting"


def is_here(preset: TargetPreset) -> bool | None:
    """Whether a target lies on this machine; None for a hub id, whose cache belongs to another library."""
    if preset.source == DEFAULT_TARGET:
        from explorer.checkpoints import smollm2

        return smollm2.is_fetched()
    return True if Path(preset.source).is_dir() else None
