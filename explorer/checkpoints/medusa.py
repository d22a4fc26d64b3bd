"""Medusa heads in their published layouts, told apart by their tensors, never by config.json.

A: ``medusa_lm_head.pt``, an LM matrix per head. B: ``medusa_lm_head.safetensors``, heads read through the target's LM
head. C (Medusa-2): a whole model whose files hold ``medusa_head.*`` beside its own tensors. Source:
FasterDecoding/Medusa (`medusa/train/train_legacy.py`, `medusa/model/medusa_model.py`) and the axolotl fork that
trained Medusa-2.
"""

from __future__ import annotations

import re
from pathlib import Path

from torch import Tensor

from explorer.checkpoints.drafter import LoadedDrafter, TargetFacts, describe, fill, name_of, require_floats
from explorer.checkpoints.files import Report, Shape, expected_shapes, locate, read_tensors, shapes_of, weight_files
from explorer.errors import CheckpointError
from explorer.models.medusa_heads import MedusaHeads

FILES = ("medusa_lm_head.safetensors", "medusa_lm_head.pt")
FULL_MODEL_PREFIX = "medusa_head."
_KEY = re.compile(r"(\d{1,4})\.(\d{1,4})\.(linear\.weight|linear\.bias|weight)")


def load_medusa(source: str, target: TargetFacts) -> LoadedDrafter:
    """Read the heads strictly; ``module`` is a MedusaHeads. Raises one CheckpointError that lists all that is wrong."""
    folder = locate(source, "Medusa heads", (*FILES, "*.safetensors", "*.bin"))
    tensors = _read_heads(folder)
    report = Report(f"Medusa heads {name_of(source)!r}")
    require_floats(report, tensors)
    sizes = _infer_sizes(shapes_of(tensors), target, report)
    report.raise_if_any()
    module = fill(MedusaHeads(*sizes), tensors, target)
    return LoadedDrafter(module, describe(source, module))


def _read_heads(folder: Path) -> dict[str, Tensor]:
    paths = weight_files(folder, extra=FILES)
    if paths[0].name in FILES:
        return read_tensors(paths)
    whole = read_tensors(paths, wanted=lambda name: name.startswith(FULL_MODEL_PREFIX))
    if not whole:
        raise CheckpointError(
            f"{folder} holds no Medusa heads: expected {' or '.join(FILES)}, or {FULL_MODEL_PREFIX}* tensors in a model"
        )
    return {name.removeprefix(FULL_MODEL_PREFIX): tensor for name, tensor in whole.items()}


def _infer_sizes(found: dict[str, Shape], target: TargetFacts, report: Report) -> tuple[int, int, int, int, bool]:
    """(heads, residual blocks a head, hidden size, vocabulary, own LM matrix): arguments of MedusaHeads.

    Problems go into ``report``; tensors are compared with a module of the checkpoint's own sizes, so that another
    hidden size is said once and not again for every tensor.
    """
    keys = {name: match for name in found if (match := _KEY.fullmatch(name))}
    heads = {int(key[1]) for key in keys.values()}
    blocks = {int(key[2]) for key in keys.values() if key[3] != "weight"}
    if not blocks or heads != set(range(len(heads))) or blocks != set(range(len(blocks))):
        report.add(f"expected 0.0.linear.weight, 0.0.linear.bias and so on for consecutive heads, found {_list(found)}")
        report.raise_if_any()
    own_lm = next((name for name, key in keys.items() if key[3] == "weight"), None)
    hidden_size = _rows(found.get("0.0.linear.weight"), target.hidden_size)
    vocab_size = _rows(found.get(own_lm) if own_lm else None, target.vocab_size)
    sizes = (len(heads), len(blocks), hidden_size, vocab_size, own_lm is not None)
    report.compare(expected_shapes(lambda: MedusaHeads(*sizes)), found)
    report.require_equal("hidden size", hidden_size, target.hidden_size)
    report.require_equal("vocabulary", vocab_size, target.vocab_size)
    return sizes


def _rows(shape: Shape | None, default: int) -> int:
    return shape[0] if shape and len(shape) == 2 and shape[0] > 0 else default


def _list(names: dict[str, Shape]) -> str:
    first = ", ".join(sorted(names)[:5]) or "nothing"
    return first if len(names) <= 5 else f"{first} and {len(names) - 5} more"
