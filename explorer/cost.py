"""Measures what a pass costs on this device and picks the tree that decodes fastest with a drafter's acceptance."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from explorer.clock import Clock
from explorer.config import AUTO, Sampling, resolve
from explorer.devices import device_name, measure_peaks
from explorer.errors import SettingError
from explorer.kernel_cost import measure_kernels
from explorer.loading import LoadedModels, ModelStore, drafter_source
from explorer.methods.base import Method
from explorer.methods.registry import METHODS
from explorer.prediction import (
    TOTAL_TOKENS,
    CostReport,
    DeviceCost,
    DraftCost,
    Prediction,
    Profile,
    best,
    best_by_rows,
    predict,
    read_profile,
)
from explorer.runner_events import RunRequest, Status
from explorer.sampling import Sampler
from explorer.target import Target, TargetOutput
from explorer.tree import DraftTree, binary_parents
from explorer.verify import is_finite, verify_greedy

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PREFIX = 256
REPEATS = 8
DEPTH = "depth"
_LARGE, _LARGE_EVERY = 16, 3  # passes beyond so many rows take part in every third round: dear, and seldom chosen
_ROWS_BETWEEN = 8


def measure_device(target: Target, repeats: int = REPEATS) -> Generator[Status, None, DeviceCost]:
    """Time passes of every size in turns, so that a drifting machine hits all alike; medians.

    Each follows an untimed one of its own size, as in decoding: what another size left in the caches is not its cost.
    """
    prompt = any_prompt(target)
    clock = Clock(target.device)
    times: dict[int, list[float]] = {size: [] for size in SIZES}
    target.start(len(prompt) + 2 * repeats * len(SIZES) + max(SIZES))
    target.prefill(prompt)
    for number in range(repeats):
        yield Status("measuring what a pass costs here", number / repeats)
        for size in SIZES:
            if size > _LARGE and number % _LARGE_EVERY:
                continue
            _pass(target, size)
            clock.start()
            _pass(target, size)
            times[size].append(clock.lap())
    return DeviceCost(
        device_name=device_name(target.device, target.places),
        dtype=str(target.dtype).removeprefix("torch."),
        num_threads=torch.get_num_threads(),
        prefix_len=len(prompt),
        verify_ms={size: statistics.median(values) for size, values in times.items()},
        shape=target.model_shape,
        peaks=measure_peaks(target.device, target.dtype),
    )


def measure_drafts(
    target: Target, kind: type[Method], drafter: Any, profile: Profile, repeats: int = REPEATS
) -> Generator[Status, None, DraftCost]:
    """Time drafting for the shapes of a profile, after a prompt of real features.

    Of shapes that differ in depth alone the shallowest and the deepest are timed; each level costs the same.
    """
    prompt, ends = any_prompt(target), _ends(profile)
    timed: dict[int, float] = {}
    for number, index in enumerate(sorted({index for pair in ends for index in pair})):
        yield Status(f"measuring what {kind.label} drafts cost here", number / (2 * len(profile.shapes)))
        shape = profile.shapes[index]
        settings: Any = resolve(kind.Settings, shape.settings | {TOTAL_TOKENS: len(shape.tau)})[0]
        method = kind(target, drafter, settings)
        if not timed:  # one prompt pass serves them all
            room = 2 * len(profile.shapes) * (repeats + 1) + _ROWS_BETWEEN
            target.start(len(prompt) + room, layers=method.feature_layers)
            output = target.prefill(prompt)
        timed[index] = _drafting_ms(method, prompt, output, repeats)
    draft_ms = []
    for shape, (first, last) in zip(profile.shapes, ends, strict=True):
        low, high = (profile.shapes[index].settings.get(DEPTH, 0) for index in (first, last))
        share = (shape.settings[DEPTH] - low) / (high - low) if high > low else 0.0
        draft_ms.append(timed[first] + share * (timed[last] - timed[first]))
    return DraftCost(kind.name, draft_ms)


def _ends(profile: Profile) -> list[tuple[int, int]]:
    """For each shape, the indices of the shallowest and the deepest one with its other settings."""
    groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    keys = [tuple(item for item in shape.settings.items() if item[0] != DEPTH) for shape in profile.shapes]
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    for indices in groups.values():
        indices.sort(key=lambda index: profile.shapes[index].settings.get(DEPTH, 0))
    return [(groups[key][0], groups[key][-1]) for key in keys]


def _drafting_ms(method: Method, prompt: list[int], output: TargetOutput, repeats: int) -> float:
    clock, times = Clock(method.target.device), []
    method.start(prompt, output, Sampler(Sampling()))
    for _ in range(repeats + 1):
        _pass(method.target, _ROWS_BETWEEN)  # a verify pass pushes the drafter's weights out of the caches
        clock.start()
        method.draft(prompt[-1]).tree()
        times.append(clock.lap())
    return statistics.median(times[1:])


def predictions(models: LoadedModels, kind: type[Method], source: str) -> Generator[Status, None, list[Prediction]]:
    """Every tree of a method with its predicted speed; what is measured for it is measured once a process.

    Raises SettingError where the drafter brings no acceptance profile.
    """
    profile = _profile_of(kind, source)
    if profile is None:
        raise SettingError(
            f"{AUTO} needs the drafter's acceptance profile, and {source} has none for {kind.name}: give numbers, or "
            "make one with `python -m explorer train profile`"
        )
    if models.device_cost is None:
        models.device_cost = yield from measure_device(models.target)
    if (kind.name, source) not in models.draft_costs:
        drafter = models.drafter(kind.name, source).module
        models.draft_costs[kind.name, source] = yield from measure_drafts(models.target, kind, drafter, profile)
    return predict(models.device_cost, models.draft_costs[kind.name, source], profile)


def report_costs(
    request: RunRequest, methods: Sequence[str], store: ModelStore, drafters: Mapping[str, str] | None = None
) -> Generator[Status, None, CostReport]:
    """Measure this device and the drafters of ``methods``; those without a profile are left out.

    drafters: sources by method, where they are not the request's. Raises ExplorerError subclasses for a target or
    drafter that does not load.
    """
    models = yield from store.models(request)
    if models.device_cost is None:
        models.device_cost = yield from measure_device(models.target)
    if models.kernel_cost is None:
        models.kernel_cost = yield from measure_kernels(models.target)
    found = {}
    for name in methods:
        own = dataclasses.replace(request, method=name, drafter=(drafters or {}).get(name, request.drafter))
        source = drafter_source(own, store.preset(own))
        if source is not None and _profile_of(METHODS[name], source) is not None:
            known = yield from predictions((yield from store.models(own)), METHODS[name], source)
            found[METHODS[name].label] = best_by_rows(known)
    return CostReport(models.target.name, models.device_cost, found, models.kernel_cost)


def _profile_of(kind: type[Method], source: str) -> Profile | None:
    profile = read_profile(Path(source))
    return profile if profile is not None and profile.method == kind.name else None


def has_auto(settings: Any) -> bool:
    """Whether any setting is left to the measurement."""
    return AUTO in dataclasses.astuple(settings)


def settle(
    settings: Any, models: LoadedModels, kind: type[Method], source: str
) -> Generator[Status, None, tuple[Any, Prediction]]:
    """The settings with ``auto`` replaced by the fastest tree here, and what is predicted of it.

    Raises SettingError where the drafter has no profile, or none with the settings that were given as numbers.
    """
    known = yield from predictions(models, kind, source)
    given = {name: value for name, value in dataclasses.asdict(settings).items() if value != AUTO}
    fixed = {name: value for name, value in given.items() if name in known[0].settings}
    chosen = best(known, fixed)
    if chosen is None:
        raise SettingError(f"{AUTO} knows no tree with {_listed(fixed)}; it knows {_choices(known)}")
    return dataclasses.replace(settings, **chosen.settings), chosen


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def _choices(known: list[Prediction]) -> str:
    names = [name for name in known[0].settings if name != TOTAL_TOKENS]
    values = {name: sorted({item.settings[name] for item in known}) for name in names}
    return "; ".join(f"{name} {', '.join(map(str, found))}" for name, found in values.items())


def _pass(target: Target, num_rows: int) -> None:
    """One verify pass with its verdict; commits the root alone."""
    tree = any_tree(target, num_rows)
    output = target.forward(tree)
    is_finite(output.logits)
    target.commit(verify_greedy(tree, output.logits).path[:1])


def any_prompt(target: Target) -> list[int]:
    """PREFIX tokens, any; fewer where the context is short and must hold what is committed behind them."""
    return _some_tokens(target, min(PREFIX, target.context_limit // 8))


def _some_tokens(target: Target, count: int) -> list[int]:
    """Any tokens: a pass takes as long whatever they are."""
    generator = torch.Generator().manual_seed(0)
    tokens: list[int] = torch.randint(target.vocab_size, (count,), generator=generator).tolist()
    return tokens


def any_tree(target: Target, num_rows: int) -> DraftTree:
    """A binary tree of so many rows, of any tokens."""
    return DraftTree.from_lists(_some_tokens(target, num_rows), binary_parents(num_rows))
