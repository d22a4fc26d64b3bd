"""Target presets: named targets with the drafters and the settings that belong to them. Standard library only."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.config import METHOD_NAMES, PUBLISHED, repo_path
from explorer.errors import SettingError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_TEXTS = ("label", "source", "chat_template")


@dataclass(frozen=True)
class TargetPreset:
    """A target with what belongs to it: ``drafters`` by method (repository paths or hub ids), settings by preset.

    chat_template: Jinja text for a tokenizer that has none of its own, else empty.
    """

    name: str
    label: str
    source: str
    drafters: dict[str, str] = field(default_factory=dict)
    settings: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    default_preset: dict[str, str] = field(default_factory=dict)
    chat_template: str = ""

    def method_settings(self, method: str, device_type: str, preset: str | None = None) -> dict[str, Any]:
        """Setting values of ``method`` under a preset (None: this device's default); SettingError for unknown ones."""
        name = preset or self.default_preset.get(device_type, PUBLISHED)
        if name not in self.settings and name != PUBLISHED:
            allowed = ", ".join(dict.fromkeys([*self.settings, PUBLISHED]))
            raise SettingError(f"unknown preset {name!r} for target {self.name}; allowed: {allowed}")
        return dict(self.settings.get(name, {}).get(method, {}))


def load_targets(path: Path | None = None) -> dict[str, TargetPreset]:
    """The target presets by name; raises SettingError where the file is missing or wrong."""
    path = path or repo_path("assets", "presets", "targets.json")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingError(f"the target presets {path} cannot be read: {error}") from error
    if not isinstance(raw, dict):
        raise SettingError(f"the target presets {path} must be an object of targets by name")
    return {name: _preset(name, entry, path) for name, entry in raw.items()}


def find_target(source: str, targets: Mapping[str, TargetPreset]) -> TargetPreset:
    """The preset of that name or source; for any other directory or hub id a bare one with the published settings."""
    same = (preset for preset in targets.values() if preset.source == source)
    return targets.get(source) or next(same, TargetPreset(source, source, source))


def drafter_path(source: str) -> str:
    """A preset's drafter as the loader wants it: an absolute path inside the repository, else the source as it is."""
    inside = repo_path(source)
    try:
        return str(inside) if not Path(source).expanduser().is_dir() and inside.is_dir() else source
    except (OSError, RuntimeError, ValueError):  # no path at all: the loader says so
        return source


def is_source(text: str) -> bool:
    """Whether this can be a checkpoint: a directory that exists, or the shape of a hub id (owner/name)."""
    try:
        return Path(text).expanduser().is_dir() or bool(_HUB_ID.fullmatch(text))
    except (OSError, RuntimeError, ValueError):
        return False


def _preset(name: str, entry: object, path: Path) -> TargetPreset:
    known = {item.name: item for item in dataclasses.fields(TargetPreset) if item.name != "name"}
    if not isinstance(entry, dict) or not {"label", "source"} <= set(entry) or not set(entry) <= set(known):
        raise SettingError(f"{path}: {name} needs label and source, and may have {', '.join(known)}; nothing else")
    for key, value in entry.items():
        wanted: type = str if key in _TEXTS else dict
        if not isinstance(value, wanted):
            raise SettingError(f"{path}: {name}.{key} must be {'text' if wanted is str else 'an object'}")
    preset = TargetPreset(name, **entry)
    for method in [*preset.drafters, *(m for group in preset.settings.values() for m in group)]:
        if method not in METHOD_NAMES:
            raise SettingError(f"{path}: {name} names the unknown method {method!r}; known: {', '.join(METHOD_NAMES)}")
    for device_type, chosen in preset.default_preset.items():
        if chosen not in preset.settings and chosen != PUBLISHED:
            raise SettingError(f"{path}: {name}.default_preset.{device_type} names the unknown preset {chosen!r}")
    return preset
