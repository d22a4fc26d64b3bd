"""One experiment from its name to its record."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import torch

from explorer.config import DEFAULT_TARGET
from explorer.devices import device_name
from explorer.errors import SettingError
from explorer.lab_records import EXPERIMENTS, LabRecord, Machine
from explorer.laboratory import batch, context, desync, temperature, template, tree
from explorer.laboratory.session import Session
from explorer.methods.registry import METHODS
from explorer.runner_events import RunRequest, Status
from explorer.target import Target
from explorer.target_presets import find_target, load_targets

RUNS: dict[str, Callable[[Session], Generator[Status, None, dict[str, list[Any]]]]] = {
    "temperature": temperature.run,
    "tree": tree.run,
    "desync": desync.run,
    "batch": batch.run,
    "template": template.run,
    "context": context.run,
}


def run_experiment(
    name: str, requests: Sequence[RunRequest], prompts: Sequence[str]
) -> Generator[Status, None, tuple[LabRecord, list[str]]]:
    """Make one experiment; returns its record and what had to be said. requests: one a method, prompts left open.

    Raises SettingError for an unknown name, ExplorerError subclasses for what does not load or fit.
    """
    if name not in RUNS:
        raise SettingError(f"unknown experiment {name!r}; allowed: {', '.join(EXPERIMENTS)}")
    session, load, started = Session(requests, prompts), os.getloadavg()[0], time.monotonic()
    yield Status("loading the target", 0.0)
    target = session.target
    found: dict[str, Any] = yield from RUNS[name](session)
    record = LabRecord(
        experiment=name,
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        target=target.name,
        machine=_machine(target, load),
        settings={"max_new_tokens": requests[0].max_new_tokens, "prompts": list(prompts)},
        drafters=session.drafters,
        shape=target.model_shape,
        target_bytes=target.num_parameters * target.dtype.itemsize,
        trained_length=_trained_length(requests[0]),
        seconds=time.monotonic() - started,
        **found,
    )
    return record, session.notices


def available(requests: Sequence[RunRequest]) -> list[RunRequest]:
    """Those of the requests whose method has a drafter, its own or the target preset's; SettingError for none."""
    preset = find_target(requests[0].target, load_targets())
    fitting = [
        request
        for request in requests
        if not METHODS[request.method].needs_drafter or request.drafter or request.method in preset.drafters
    ]
    if not fitting:
        names = ", ".join(request.method for request in requests)
        raise SettingError(f"target {preset.name} has no drafter for {names}: name one with --drafter and --methods")
    return fitting


def _machine(target: Target, load: float) -> Machine:
    dtype = str(target.dtype).removeprefix("torch.")
    return Machine(
        device_name(target.device, target.places), target.device.type, dtype, torch.get_num_threads(), round(load, 2)
    )


def _trained_length(request: RunRequest) -> int | None:
    """The shipped drafters' recipe bounds its conversations; of other drafters nothing is known here."""
    if request.target != DEFAULT_TARGET or request.drafter is not None:
        return None
    from explorer.training.generate import GenerateOptions

    return GenerateOptions.max_length
