"""What loading any drafter needs and gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from explorer.checkpoints.files import Report
from explorer.config import repo_path
from explorer.trace import DrafterRecord


class TargetFacts(Protocol):
    """The part of a target that a drafter has to fit; explorer.target.Target has it."""

    @property
    def name(self) -> str: ...
    @property
    def hidden_size(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...
    @property
    def embed_tokens(self) -> nn.Embedding: ...
    @property
    def lm_head(self) -> nn.Linear: ...


class LoadedDrafter(NamedTuple):
    """A drafter on the target's device in the target's dtype, and what the record says of it.

    doubt: a sentence where it does not seem to belong to its target (explorer.drafter_check), for every run to repeat.
    ``module`` is what the method is given: a network, or for a draft model a whole target of its own. feature_layers:
    decoder layers of the target whose inputs it reads.
    """

    module: Any
    record: DrafterRecord
    doubt: str | None = None
    feature_layers: tuple[int, ...] = ()


def name_of(source: str) -> str:
    """The display name: target/method of a shipped drafter, another directory's own name, or the hub id."""
    path = Path(source).expanduser()
    if not path.is_dir():
        return source
    shipped = repo_path("assets", "drafters")
    path = path.resolve()
    return path.relative_to(shipped).as_posix() if path.is_relative_to(shipped) else path.name


def require_floats(report: Report, tensors: Mapping[str, Tensor]) -> None:
    """Note every weight that is no floating-point tensor."""
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            report.add(f"{name} is {str(tensor.dtype).removeprefix('torch.')}, expected floating point")
        elif tensor.layout is not torch.strided:
            report.add(f"{name} is a {str(tensor.layout).removeprefix('torch.')} tensor, expected a dense one")


def check_token_ids(name: str, ids: Tensor, vocab_size: int, report: Report) -> bool:
    """Whether ``ids`` [draft vocabulary] int64 are different target ids; notes under ``name`` what is wrong."""
    if ids.dtype != torch.int64 or ids.dim() != 1 or ids.numel() == 0:
        report.add(f"{name} must be a list of int64, found {list(ids.shape)} {ids.dtype}")
        return False
    if not bool(((ids >= 0) & (ids < vocab_size)).all()) or ids.unique().numel() != ids.numel():
        report.add(f"{name} must map draft ids to different target ids below {vocab_size}")
        return False
    return True


def fill(module: nn.Module, tensors: Mapping[str, Tensor], target: TargetFacts) -> nn.Module:
    """Give ``module`` these tensors, in the target's dtype where they are weights, and move it to the target's device.

    Only the weights are cast: ``Module.to(dtype)`` would round the rotary frequencies too.
    """
    cast = {name: t.to(target.dtype) if t.is_floating_point() else t for name, t in tensors.items()}
    module.load_state_dict(cast, assign=True)
    return module.to(target.device).eval().requires_grad_(False)


def describe(source: str, module: nn.Module) -> DrafterRecord:
    """Size of the drafter's own weights; what it borrows from the target is no parameter of it."""
    own = list(module.parameters())
    return DrafterRecord(
        name=name_of(source),
        num_parameters=sum(p.numel() for p in own),
        num_bytes=sum(p.numel() * p.element_size() for p in own),
    )
