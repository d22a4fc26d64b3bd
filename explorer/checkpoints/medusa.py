"""Medusa heads in their published layouts, told apart by their tensors, never by config.json.

A: ``medusa_lm_head.pt``, an LM matrix per head. B: ``medusa_lm_head.safetensors``, heads read through the target's LM
head. C (Medusa-2): a whole model whose files hold ``medusa_head.*`` beside its own tensors. vLLM's: see vllm_medusa.
Beside B there may be files of ours: see token_map and target_adapter.
Source: FasterDecoding/Medusa (`medusa/train/train_legacy.py`, `medusa/model/medusa_model.py`) and the axolotl fork that
trained Medusa-2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import torch
from torch import Tensor

from explorer.checkpoints.drafter import (
    LoadedDrafter,
    TargetFacts,
    check_token_ids,
    describe,
    fill,
    name_of,
    require_floats,
)
from explorer.checkpoints.files import Report, Shape, expected_shapes, locate, read_tensors, shapes_of, weight_files
from explorer.checkpoints.token_map import read_token_map
from explorer.checkpoints.vllm_medusa import TOKEN_MAP, from_vllm, is_vllm, vllm_name
from explorer.errors import CheckpointError
from explorer.models.medusa_heads import MedusaHeads

FILES = ("medusa_lm_head.safetensors", "medusa_lm_head.pt")
FULL_MODEL_PREFIX = "medusa_head."
_KEY = re.compile(r"(\d{1,4})\.(\d{1,4})\.(linear\.weight|linear\.bias|weight)")


def load_medusa(source: str, target: TargetFacts) -> LoadedDrafter:
    """Read the heads strictly; ``module`` is a MedusaHeads. Raises one CheckpointError that lists all that is wrong."""
    folder = locate_heads(source)
    found = _read_heads(folder)
    report = Report(f"Medusa heads {name_of(source)!r}", target.name)
    require_floats(report, {name: tensor for name, tensor in found.items() if name != TOKEN_MAP})
    in_file: Callable[[str], str] = vllm_name if is_vllm(found) else str
    tensors, token_map = _published(found)
    sizes = _infer_sizes(shapes_of(tensors), target, report, in_file)
    if token_map is None:
        token_map = read_token_map(folder, sizes[4], report)
    _check_vocabulary(sizes, token_map, target, report)
    report.raise_if_any()
    with torch.device("meta"):  # each parameter becomes a tensor of the file
        module = MedusaHeads(*sizes)
    fill(module, tensors, target)
    module.tie_equal_blocks()
    if token_map is not None:
        module.restrict(token_map.to(target.device))
    return LoadedDrafter(module, describe(source, module))


def locate_heads(source: str) -> Path:
    """The directory of heads; CheckpointError where there is none."""
    return locate(source, "Medusa heads", (*FILES, "*.safetensors", "*.bin"))


def read_medusa(source: str) -> tuple[dict[str, Tensor], Tensor | None]:
    """(tensors of heads under their published names, token map or None), unchecked: ``load_medusa`` checks them."""
    folder = locate_heads(source)
    tensors, token_map = _published(_read_heads(folder))
    return tensors, read_token_map(folder, False, Report(folder.name)) if token_map is None else token_map


def has_heads(folder: Path) -> bool:
    """Whether a folder's weight files hold Medusa heads."""
    paths = weight_files(folder, extra=FILES)
    return paths[0].name in FILES or bool(read_tensors(paths, wanted=_is_a_heads))


def _published(found: dict[str, Tensor]) -> tuple[dict[str, Tensor], Tensor | None]:
    return from_vllm(found) if is_vllm(found) else (_fill_in_repeated_blocks(found), None)


def _read_heads(folder: Path) -> dict[str, Tensor]:
    paths = weight_files(folder, extra=FILES)
    if paths[0].name in FILES:
        return read_tensors(paths)
    found = read_tensors(paths, wanted=_is_a_heads)
    if is_vllm(found):
        return read_tensors(paths)  # heads and nothing else
    if not found:
        raise CheckpointError(
            f"{folder} holds no Medusa heads: expected {' or '.join(FILES)}, or {FULL_MODEL_PREFIX}* tensors in a "
            "model, or vLLM's blocks.* and lm_heads.*"
        )
    return {name.removeprefix(FULL_MODEL_PREFIX): tensor for name, tensor in found.items()}


def _is_a_heads(name: str) -> bool:
    return name.startswith(FULL_MODEL_PREFIX) or _KEY.fullmatch(name) is not None or is_vllm([name])


def _fill_in_repeated_blocks(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """The original repeats one residual block object; a file that stores equal tensors once then has only block 0.

    That is seen where every head has block 0 and no other, while its LM matrix has a number beyond 1.
    """
    keys = {name: match for name in found if (match := _KEY.fullmatch(name))}
    blocks = {key[2] for key in keys.values() if key[3] != "weight"}
    matrices = {int(key[2]) for key in keys.values() if key[3] == "weight"}
    if blocks != {"0"} or len(matrices) != 1:
        return found
    num_layers = matrices.pop()
    first = {name: key for name, key in keys.items() if key[3] != "weight"}
    return found | {
        f"{key[1]}.{block}.{key[3]}": found[name] for name, key in first.items() for block in range(1, num_layers)
    }


def _infer_sizes(
    found: dict[str, Shape], target: TargetFacts, report: Report, in_file: Callable[[str], str]
) -> tuple[int, int, int, int, bool]:
    """(heads, residual blocks a head, hidden size, rows of an LM matrix, own LM matrix): arguments of MedusaHeads.

    Problems go into ``report``; tensors are compared with a module of the checkpoint's own sizes, so that another
    hidden size is said once and not again for every tensor. in_file: published name -> the file's own.
    """
    keys = {name: match for name in found if (match := _KEY.fullmatch(name))}
    heads = {int(key[1]) for key in keys.values()}
    blocks = {int(key[2]) for key in keys.values() if key[3] != "weight"}
    if not blocks or heads != set(range(len(heads))) or blocks != set(range(len(blocks))):
        report.add(
            "expected 0.0.linear.weight, 0.0.linear.bias and so on for consecutive heads, or vLLM's "
            f"blocks.0.layers.0.weight, found {_list(map(in_file, found))}"
        )
        report.raise_if_any()
    own_lm = next((name for name, key in keys.items() if key[3] == "weight"), None)
    hidden_size = _rows(found.get("0.0.linear.weight"), target.hidden_size)
    num_rows = _rows(found.get(own_lm) if own_lm else None, target.vocab_size)
    sizes = (len(heads), len(blocks), hidden_size, num_rows, own_lm is not None)
    expected = expected_shapes(lambda: MedusaHeads(*sizes))
    report.compare(*({in_file(name): shape for name, shape in shapes.items()} for shapes in (expected, found)))
    report.require_equal("hidden size", hidden_size, target.hidden_size)
    return sizes


def _check_vocabulary(
    sizes: tuple[int, int, int, int, bool], token_map: Tensor | None, target: TargetFacts, report: Report
) -> None:
    num_rows, own_lm = sizes[3:]
    if token_map is None:
        report.require_equal("vocabulary", num_rows, target.vocab_size)
    elif check_token_ids(TOKEN_MAP, token_map, target.vocab_size, report) and own_lm and num_rows != len(token_map):
        report.add(f"{TOKEN_MAP} names {len(token_map)} tokens, but the heads' matrices have {num_rows} rows")


def _rows(shape: Shape | None, default: int) -> int:
    return shape[0] if shape and len(shape) == 2 and shape[0] > 0 else default


def _list(names: Iterable[str]) -> str:
    known = sorted(names)
    first = ", ".join(known[:5]) or "nothing"
    return first if len(known) <= 5 else f"{first} and {len(known) - 5} more"
