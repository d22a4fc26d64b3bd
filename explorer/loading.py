"""Which models a request needs, loaded once and kept: targets, their drafters, and the default target's first fetch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from explorer.adapter_words import AdapterRecord
from explorer.bitwise import BitwiseTarget
from explorer.checkpoints import smollm2
from explorer.checkpoints.draft_model import load_draft_model
from explorer.checkpoints.drafter import LoadedDrafter
from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import load_eagle3
from explorer.checkpoints.medusa import load_medusa
from explorer.checkpoints.placement import choose_device
from explorer.checkpoints.target import LoadedTarget, load_target
from explorer.checkpoints.target_adapter import adapt, find_adapter
from explorer.config import BACKENDS, CACHES, DEFAULT_TARGET, DTYPES, EXECUTIONS, NUMERICS
from explorer.drafter_check import Reading, find_doubt, read_answer, read_text
from explorer.errors import DeviceError, SettingError
from explorer.graphed import GraphedTarget
from explorer.kernel_words import KernelCost
from explorer.methods.base import Method
from explorer.methods.registry import METHODS
from explorer.models.split import SPLIT
from explorer.prediction import DeviceCost, DraftCost
from explorer.runner_events import RunRequest, Status
from explorer.target import Target
from explorer.target_fetch import TargetFetch
from explorer.target_presets import TargetPreset, drafter_path, find_target, load_targets
from explorer.text import Labeler


def _load_draft_model(source: str, target: Target) -> LoadedDrafter:
    """A draft model as a target of its own, which drafts with the same passes and cache as the target verifies."""
    model, record, shares_embedding = load_draft_model(source, target)
    parts = (model, None, record.name, frozenset[int](), target.backend, target.head if shares_embedding else None)
    if target.capture is None:
        return LoadedDrafter(Target(*parts), record)
    return LoadedDrafter(GraphedTarget(*parts, capture=target.capture), record)


LOADERS: dict[str, Callable[[str, Target], LoadedDrafter]] = {
    "draft_model": _load_draft_model,
    "medusa": load_medusa,
    "eagle1": load_eagle,
    "eagle2": load_eagle,
    "eagle3": load_eagle3,
}
ADAPTING = ("medusa",)  # methods whose drafters may bring an adapter for their target
_PLACEMENTS = {"dtype": DTYPES, "backend": BACKENDS, "cache": CACHES, "numerics": NUMERICS, "execution": EXECUTIONS}
MAX_TARGETS = 2  # the least recently used one makes room, with its drafters


@dataclass
class LoadedModels:
    """A target with its labels and the drafters loaded for it so far, by loader and source.

    adapter: what a drafter changed of the target's weights, None for the original.
    """

    target: Target
    labeler: Labeler
    adapter: AdapterRecord | None = None
    drafters: dict[tuple[Callable[..., LoadedDrafter], str], LoadedDrafter] = field(default_factory=dict)
    device_cost: DeviceCost | None = None  # measured when a setting is left to it
    kernel_cost: KernelCost | None = None  # measured when somebody asks
    draft_costs: dict[tuple[str, str], DraftCost] = field(default_factory=dict)
    readings: dict[tuple[str, tuple[int, ...]], Reading] = field(default_factory=dict)  # by text and layers

    def drafter(self, method: str, source: str) -> LoadedDrafter:
        """The drafter at ``source``, loaded and compared with the target at its first use.

        Methods that share a loader share the drafter. Raises CheckpointError where it does not fit the target.
        """
        key = (LOADERS[method], source)
        if key not in self.drafters:
            loaded = LOADERS[method](source, self.target)
            read = partial(self._reading, layers=loaded.feature_layers)
            doubt = find_doubt(loaded.module, self.target, read(read_text), partial(read, read_answer))
            self.drafters[key] = loaded._replace(doubt=doubt)
        return self.drafters[key]

    def _reading(self, read: Callable[..., Reading], layers: tuple[int, ...]) -> Reading:
        """The target's own reading of a text that drafters are compared over, with what enters these layers."""
        key = (read.__name__, layers)
        if key not in self.readings:
            self.readings[key] = read(self.target, layers)
        return self.readings[key]


class ModelStore:
    """Loaded models by what was asked for. Only one run may use it at a time."""

    def __init__(self) -> None:
        self.default_target = TargetFetch()
        self._presets = load_targets()
        self._models: OrderedDict[tuple[str, ...], LoadedModels] = OrderedDict()

    def preset(self, request: RunRequest) -> TargetPreset:
        """The target that a request names, with the settings and drafters that belong to it."""
        return find_target(request.target, self._presets)

    def models(self, request: RunRequest) -> Generator[Status, None, LoadedModels]:
        """Statuses while loading, then returns the models; raises ExplorerError subclasses for what is not usable.

        A target that the request's drafter adapts is another target than the original: loaded from its files again and
        kept beside it, so that neither knows of the other.
        """
        preset = self.preset(request)
        source, adapter = preset.source, adapter_source(request, preset)
        how = (request.device, request.dtype, request.backend, request.numerics, request.execution)
        key = (source, *how, adapter or "")
        if key not in self._models:
            if source == DEFAULT_TARGET and not smollm2.is_fetched():
                yield from self.default_target.wait()
            yield Status("loading the target")
            while len(self._models) >= MAX_TARGETS:
                self._models.popitem(last=False)
            backend = "naive" if request.numerics == "bitwise" else request.backend
            loaded = load_target(source, device=request.device, dtype=request.dtype, backend=backend)
            if preset.chat_template and not loaded.tokenizer.chat_template:
                loaded.tokenizer.chat_template = preset.chat_template
            if adapter is not None:
                if request.device == SPLIT:
                    raise DeviceError(f"a target is adapted on one device, not on {SPLIT}: choose another device")
                loaded = adapt(loaded, adapter)
            target = _make_target(loaded, request)
            self._models[key] = LoadedModels(target, Labeler(loaded.tokenizer), loaded.adapter)
        self._models.move_to_end(key)
        return self._models[key]


def _make_target(loaded: LoadedTarget, request: RunRequest) -> Target:
    """The kind of target that numerics and execution name; DeviceError where an explicit choice is not to be had."""
    parts = (loaded.model, loaded.tokenizer, loaded.name, loaded.stop_ids, loaded.backend)
    if request.numerics == "bitwise":
        return BitwiseTarget(*parts)
    if request.execution == "eager" or request.device == SPLIT or loaded.model.device.type != "cuda":
        return Target(*parts)
    target = GraphedTarget(*parts)
    if target.why_eager and request.execution == "graphed":
        raise DeviceError(f"{target.why_eager}; choose auto or eager execution")
    return target


def method_class(request: RunRequest) -> type[Method]:
    """The method that a request names; SettingError lists the known ones."""
    if request.method not in METHODS:
        raise SettingError(f"unknown method {request.method!r}; allowed: {', '.join(METHODS)}")
    return METHODS[request.method]


def check_placement(request: RunRequest) -> None:
    """Refuse words for dtype, backend and the like that no machine knows, and what cannot go together."""
    for name, known in _PLACEMENTS.items():
        value = getattr(request, name)
        if value not in known:
            raise DeviceError(f"unknown {name} {value!r}: choose {', '.join(known)}")
    if request.device == SPLIT:
        _check_split(request)
    if request.execution == "graphed" and choose_device(request.device).type != "cuda":
        raise DeviceError("graphed execution needs an NVIDIA GPU: choose auto or eager")
    if request.execution == "graphed" and request.numerics == "bitwise":
        raise DeviceError("bitwise numerics attend row by row, which is not captured: choose eager")
    if request.numerics == "bitwise" and request.backend == "triton":
        raise DeviceError("bitwise numerics attend row by row, which the triton backend does not: choose naive")


def _check_split(request: RunRequest) -> None:
    """Several devices run a pass one after another, launched as ever, over keys that each keeps itself."""
    one_device_only = {"backend": "triton", "execution": "graphed", "cache": "slots"}
    for name, value in one_device_only.items():
        if getattr(request, name) == value:
            raise DeviceError(f"{name} {value} is for a target on one device, not for {SPLIT}: choose another {name}")


def drafter_source(request: RunRequest, preset: TargetPreset) -> str | None:
    """Directory or hub id of the drafter: the request's own, else the preset's; None for methods that have none."""
    if not method_class(request).needs_drafter:
        if request.drafter:
            raise SettingError(f"{request.method} uses no drafter: leave --drafter out")
        return None
    source = request.drafter or preset.drafters.get(request.method)
    if not source:
        known = load_targets()
        presets = "" if preset.name in known else f", or a preset as target: {', '.join(known)}"
        raise SettingError(
            f"no drafter is known for {request.method} on target {preset.name}: "
            f"name one with --drafter DIR_OR_ID{presets}"
        )
    return drafter_path(source)


def adapter_source(request: RunRequest, preset: TargetPreset) -> str | None:
    """The drafter whose adapter the request's target has: its own, else the one it names; None for the original.

    Raises SettingError where these are two, and as ``find_adapter`` does.
    """
    named = request.drafter or preset.drafters.get(request.method)
    if request.method not in ADAPTING or not named or find_adapter(source := drafter_path(named)) is None:
        return request.adapter
    if request.adapter not in (None, source):
        raise SettingError(f"{source} and {request.adapter} adapt the target differently: one run has one target")
    return source


def with_one_target(requests: Sequence[RunRequest], preset: TargetPreset) -> list[RunRequest]:
    """Requests that are compared with each other, all on the target that one of them adapts, if one does.

    Raises SettingError where two adapt it differently.
    """
    found = {source for each in requests if (source := adapter_source(each, preset)) is not None}
    if len(found) > 1:
        raise SettingError(f"{' and '.join(sorted(found))} adapt the target differently: measure them apart")
    return [replace(each, adapter=next(iter(found), None)) for each in requests]
