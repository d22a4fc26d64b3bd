"""What the operator decides when the app starts; visitors choose only among what stands here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from explorer.config import DEFAULT_TARGET, repo_path
from explorer.errors import SettingError
from explorer.target_presets import TargetPreset, load_targets


@dataclass(frozen=True)
class AppOptions:
    """Limits and choices of one server. ``targets`` are the presets a visitor may pick, the first one picked already.

    host and port None leave the choice to Gradio (127.0.0.1 and the first free port from 7860, or a Space's own).
    """

    targets: tuple[TargetPreset, ...]
    host: str | None = None
    port: int | None = None
    is_shared: bool = False
    device_type: str = "cpu"
    traces_dir: Path = field(default_factory=lambda: repo_path("assets", "traces"))
    max_new_tokens: int = 512
    max_prompt_chars: int = 20_000
    max_waiting: int = 16
    max_kept_runs: int = 32
    max_upload_mb: int = 8
    max_upload_unpacked_mb: int = 8

    def target(self, name: object) -> TargetPreset:
        """The allowed preset of that name; raises SettingError for any other."""
        for preset in self.targets:
            if preset.name == name:
                return preset
        allowed = ", ".join(preset.name for preset in self.targets)
        raise SettingError(f"this server does not offer the target {str(name)[:80]!r}; allowed: {allowed}")


def pick_targets(names: str | None, known: Mapping[str, TargetPreset] | None = None) -> tuple[TargetPreset, ...]:
    """The presets of a comma-separated list (None: the default target alone); raises SettingError for unknown names."""
    presets = known if known is not None else load_targets()
    wanted = [name.strip() for name in (names or DEFAULT_TARGET).split(",") if name.strip()]
    unknown = [name for name in wanted if name not in presets]
    if unknown or not wanted:
        raise SettingError(f"unknown target {', '.join(unknown) or repr(names)}; known presets: {', '.join(presets)}")
    return tuple(presets[name] for name in dict.fromkeys(wanted))
