"""A graph capture for machines without a GPU: operators are recorded with the very tensors, and run again as recorded.

What Python decides while recording is decided for ever, as in a CUDA graph: a length that was a Python number, a
branch, a tensor that is later replaced by another. What would ask the device, or bring host data to it, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

T = TypeVar("T")
_REFUSED = ("_local_scalar_dense", "lift_fresh", "nonzero", "masked_select", "equal", "is_nonzero", "unique")


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        counts = name in ("index", "index_put_") and any(t.dtype == torch.bool for t in _tensors(args[1]))
        if name in _REFUSED or counts:
            raise RuntimeError(f"operation not permitted when stream is capturing: {func}")
        output = func(*args, **kwargs)
        self.calls.append((func, args, kwargs, output))
        return output


def recorded(work: Callable[[], T], /) -> Callable[[], T]:
    """What explorer.models.graphs.cuda_graph does, with a recording."""
    work()
    with _Recorder() as recorder:
        captured = work()
    steps = [(call, _copied(call)) for call in recorder.calls]

    def replay() -> T:
        with torch.inference_mode():
            for (func, args, kwargs, output), is_copied in steps:
                again = func(*args, **kwargs)
                if is_copied:
                    for old, new in zip(_tensors(output), _tensors(again), strict=True):
                        old.copy_(new)
        return captured

    return replay


def _copied(call: tuple[Any, Any, Any, Any]) -> bool:
    """Whether an operator made memory of its own, rather than a view or a change of what it was given."""
    _, args, kwargs, output = call
    given = {_place(tensor) for tensor in _tensors((args, kwargs))} - {None}
    return not any(_place(tensor) in given for tensor in _tensors(output))


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, torch.Tensor)]


def _place(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):  # oneDNN's packed matrices show no storage
        return None
