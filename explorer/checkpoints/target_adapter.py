"""The adapter beside Medusa-2 heads: low-rank changes to their target, which are merged into a target of its own.

A layout of ours: ``target_adapter.safetensors`` (explorer.models.low_rank.TargetAdapter) and an object in config.json.
A Medusa-2 checkpoint elsewhere is a whole model (layout C of explorer.checkpoints.medusa) and has neither.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from explorer.adapter_words import AdapterRecord, adapted_name
from explorer.checkpoints.drafter import name_of, require_floats
from explorer.checkpoints.files import Report, expected_shapes, read_config, read_tensors, shapes_of
from explorer.checkpoints.medusa import locate_heads
from explorer.checkpoints.target import LoadedTarget
from explorer.models.low_rank import Sizes, TargetAdapter, linears_of, matrix_sizes, merge

ADAPTER_FILE = "target_adapter.safetensors"
ADAPTER = "target_adapter"  # in config.json
_NUMBERS = ("rank", "scale", "target_norm", "mean_kl", "agreement", "num_tokens")
_WHOLE = ("rank", "num_tokens")
_MAX_RANK = 4096  # a larger one would be no low rank, and is not allocated
# Rounding to bfloat16 moves the norm of millions of numbers by a millionth, another training by far more.
_NORM_TOLERANCE = 1e-4


def find_adapter(source: str) -> Path | None:
    """The folder of Medusa heads that bring an adapter for their target; None for heads that leave it alone.

    Raises CheckpointError where there is no such folder.
    """
    folder = locate_heads(source)
    return folder if (folder / ADAPTER_FILE).is_file() else None


def has_adapter(source: str) -> bool:
    """Whether a local directory holds one; a hub id is not looked up, and counts as none."""
    return (Path(source).expanduser() / ADAPTER_FILE).is_file()


def adapt(loaded: LoadedTarget, source: str) -> LoadedTarget:
    """Merge the adapter that these heads bring into a target whose weights are nobody else's; it is called otherwise.

    Raises one CheckpointError that lists all that does not fit.
    """
    record, decoder = read_record(source), loaded.model.get_decoder()
    merge(decoder, read_adapter(source, decoder))
    return replace(loaded, name=adapted_name(loaded.name, record.name), adapter=record)


def read_record(source: str) -> AdapterRecord:
    """What the heads' files say of the adapter beside them; CheckpointError lists what they lack."""
    return _read(source)[0]


def read_adapter(source: str, decoder: nn.Module) -> TargetAdapter:
    """The adapter beside these heads, in float32, for a transformers decoder that has none; raises as ``adapt``."""
    _, facts, tensors, report = _read(source)
    sizes, rank, scale = matrix_sizes(decoder), facts["rank"], facts["scale"]
    report.compare(expected_shapes(lambda: TargetAdapter(sizes, rank, scale)), shapes_of(tensors))
    found, wanted = target_norm(decoder), facts["target_norm"]
    if abs(found - wanted) > _NORM_TOLERANCE * wanted:
        report.add(f"it was made for another target: its matrices had the norm {wanted:.6g}, these have {found:.6g}")
    report.raise_if_any()
    with torch.device("meta"):  # each parameter becomes a tensor of the file
        adapter = TargetAdapter(sizes, rank, scale)
    adapter.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return adapter.requires_grad_(False)


@torch.no_grad()
def target_norm(decoder: nn.Module) -> float:
    """The Frobenius norm of all matrices that an adapter changes, together: by it an adapter knows its target."""
    matrices = (linear.weight.float() for linear in linears_of(decoder).values())
    return math.sqrt(sum(float(matrix.square().sum(dtype=torch.float64)) for matrix in matrices))


def num_numbers(sizes: dict[str, Sizes], rank: int) -> int:
    """How many numbers an adapter holds: for every matrix ``rank * (inputs + outputs)``."""
    return rank * sum(inputs + outputs for inputs, outputs in sizes.values())


def _read(source: str) -> tuple[AdapterRecord, dict[str, Any], dict[str, Tensor], Report]:
    """Record, numbers of config.json and tensors; the report is for what comparing with a target finds."""
    folder, name = locate_heads(source), name_of(source)
    report, config = Report(f"the target adapter of {name!r}"), read_config(folder)
    stored, original = config.get(ADAPTER), config.get("base_model_name_or_path")
    facts = stored if isinstance(stored, dict) else {}
    for key in _NUMBERS:
        if not _is_number(facts.get(key), is_whole=key in _WHOLE):
            wanted = "a whole number of at least 1" if key in _WHOLE else "a number of at least 0"
            report.add(f"config.json: {ADAPTER}.{key} must be {wanted}, found {facts.get(key)!r}")
        elif key == "rank" and facts[key] > _MAX_RANK:
            report.add(f"config.json: {ADAPTER}.rank is {facts[key]}, more than {_MAX_RANK}")
    if not isinstance(original, str):
        report.add("config.json: base_model_name_or_path must name the target")
    tensors = read_tensors([folder / ADAPTER_FILE])
    require_floats(report, tensors)
    report.raise_if_any()
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        report.add("some of its numbers are not finite")
    distance = {key: facts[key] for key in ("mean_kl", "agreement", "num_tokens")}
    num_parameters = sum(tensor.numel() for tensor in tensors.values())
    return AdapterRecord(name, str(original), num_parameters, **distance), facts, tensors, report


def _is_number(value: object, *, is_whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        return False
    return math.isfinite(value) and value >= is_whole
