"""What the operator decides when the app starts; visitors choose only among what stands here."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from explorer.adapter_words import distance_text
from explorer.checkpoints.drafter import name_of
from explorer.checkpoints.target_adapter import has_adapter, read_record
from explorer.config import DEFAULT_TARGET, repo_path
from explorer.errors import CheckpointError, SettingError
from explorer.service.served_runner import RunLimits
from explorer.target_presets import TargetPreset, drafter_path, is_source, load_targets


@dataclass(frozen=True)
class DrafterChoice:
    """A drafter that visitors may pick: a browser sees and sends ``name``; ``source`` never leaves the server."""

    name: str
    source: str

    @property
    def label(self) -> str:
        """What a list shows: the name, and of a drafter that adapts its target, how far that moves it."""
        source = drafter_path(self.source)
        if not has_adapter(source):
            return self.name
        try:
            return f"{self.name}, adapts the target: {distance_text(read_record(source))}"
        except CheckpointError:  # a run will say what is wrong with it
            return f"{self.name}, adapts the target"


@dataclass(frozen=True)
class AppOptions:
    """Limits and choices of one server. ``targets`` are the presets a visitor may pick, the first one picked already.

    more_drafters: (target name, method) -> sources beside the preset's own. host and port None leave the choice to
    Gradio (127.0.0.1 and the first free port from 7860, or a Space's own).
    """

    targets: tuple[TargetPreset, ...]
    more_drafters: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    host: str | None = None
    port: int | None = None
    is_shared: bool = False
    device_type: str = "cpu"
    traces_dir: Path = field(default_factory=lambda: repo_path("assets", "traces"))
    laboratory_dir: Path = field(default_factory=lambda: repo_path("assets", "laboratory"))
    max_new_tokens: int = 512
    max_prompt_chars: int = 20_000
    max_prompt_tokens: int | None = None  # None: what the target reads
    max_run_seconds: float = 300.0
    max_waiting: int = 16
    max_per_visitor: int = 2
    max_kept_runs: int = 32
    max_kept_mb: int = 256
    max_upload_mb: int = 8
    max_upload_unpacked_mb: int = 8

    @property
    def limits(self) -> RunLimits:
        """What one run may ask for."""
        return RunLimits(self.max_new_tokens, self.max_prompt_tokens, self.max_run_seconds)

    def target(self, name: object) -> TargetPreset:
        """The allowed preset of that name; raises SettingError for any other."""
        for preset in self.targets:
            if preset.name == name:
                return preset
        allowed = ", ".join(preset.name for preset in self.targets)
        raise SettingError(f"this server does not offer the target {str(name)[:80]!r}; allowed: {allowed}")

    def drafters(self, target: TargetPreset, method: str) -> tuple[DrafterChoice, ...]:
        """The drafters that a visitor may pick for a method, the preset's own first; none for methods without one."""
        own = [target.drafters[method]] if method in target.drafters else []
        sources = dict.fromkeys([*own, *self.more_drafters.get((target.name, method), ())])
        choices: dict[str, str] = {}
        for source in sources:
            name = plain = name_of(drafter_path(source))
            number = 1
            while name in choices:
                number += 1
                name = f"{plain} ({number})"
            choices[name] = source
        return tuple(DrafterChoice(name, source) for name, source in choices.items())

    def drafter(self, target: TargetPreset, method: str, name: object) -> DrafterChoice | None:
        """The allowed drafter of that name (None: the first); None for methods without one, SettingError for others."""
        allowed = self.drafters(target, method)
        if not allowed or name is None:
            return allowed[0] if allowed else None
        for choice in allowed:
            if choice.name == name:
                return choice
        names = ", ".join(choice.name for choice in allowed)
        refused = f"the drafter {str(name)[:80]!r} for {method} on {target.label}"
        raise SettingError(f"this server does not offer {refused}; allowed: {names}")


def pick_targets(names: str | None, known: Mapping[str, TargetPreset] | None = None) -> tuple[TargetPreset, ...]:
    """The targets of a comma-separated list (None: the default target alone): presets, directories or hub ids.

    Raises SettingError for what is none of them, and for two targets of one name.
    """
    presets = known if known is not None else load_targets()
    wanted = [name.strip() for name in (names or DEFAULT_TARGET).split(",") if name.strip()]
    unknown = [name for name in wanted if name not in presets and not is_source(name)]
    if unknown or not wanted:
        raise SettingError(
            f"unknown target {', '.join(unknown) or repr(names)}; known presets: {', '.join(presets)}; "
            "or name a checkpoint directory or a hub id (owner/name)"
        )
    picked = [presets.get(name) or _bare_target(name) for name in dict.fromkeys(wanted)]
    repeated = {target.name for i, target in enumerate(picked) if target.name in [other.name for other in picked[:i]]}
    if repeated:
        raise SettingError(f"two targets are called {', '.join(sorted(repeated))}: rename a directory")
    return tuple(picked)


def pick_drafters(
    specs: Iterable[str], targets: tuple[TargetPreset, ...]
) -> tuple[tuple[TargetPreset, ...], dict[tuple[str, str], tuple[str, ...]]]:
    """``[TARGET:]METHOD=DIR_OR_ID`` (without TARGET: the first one) -> (targets, more_drafters) of AppOptions.

    A method that a target had no drafter for has one then. Raises SettingError for unknown targets and methods, and
    for what is neither a directory nor a hub id.
    """
    by_name = {target.name: target for target in targets}
    more: dict[tuple[str, str], tuple[str, ...]] = {}
    for spec in specs:
        where, sign, source = spec.partition("=")
        name, _, method = where.strip().rpartition(":")
        target = by_name.get(name or targets[0].name)
        if not sign or not source.strip() or target is None:
            raise SettingError(
                f"--drafter {spec!r} is not [TARGET:]METHOD=DIR_OR_ID with one of the targets {', '.join(by_name)}"
            )
        _check_drafter(spec, method, source.strip())
        known = more.get((target.name, method), ())
        more[target.name, method] = (*known, source.strip())
        by_name[target.name] = dataclasses.replace(target, drafters={method: source.strip()} | target.drafters)
    return tuple(by_name.values()), more


def _check_drafter(spec: str, method: str, source: str) -> None:
    from explorer.methods.registry import METHODS

    drafting = [name for name, kind in METHODS.items() if kind.needs_drafter]
    if method not in drafting:
        raise SettingError(f"--drafter {spec!r}: {method!r} uses no drafter; allowed: {', '.join(drafting)}")
    if not is_source(drafter_path(source)):
        raise SettingError(f"--drafter {spec!r}: {source!r} is neither a directory here nor a hub id (owner/name)")


def _bare_target(source: str) -> TargetPreset:
    """A directory or hub id with the published settings; a directory is called by its own name only."""
    path = Path(source).expanduser()
    name = path.resolve().name if path.is_dir() else source
    return TargetPreset(name, name, str(path.resolve()) if path.is_dir() else source)
