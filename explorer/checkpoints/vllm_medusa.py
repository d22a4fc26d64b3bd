"""Medusa heads as vLLM keeps them, under the names of the original layouts.

``blocks.{head}.layers.{block}.{weight,bias}`` (biases may be missing from all), ``lm_heads.{head}.weight`` or one
``lm_head.weight`` for all heads, and perhaps ``token_map``: the target ids that the rows of the matrices stand for.
Source: `vllm/model_executor/models/medusa.py` of vllm-project/vllm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch
from torch import Tensor

from explorer.errors import CheckpointError

TOKEN_MAP = "token_map"
_PREFIX = re.compile(r"^medusa_heads\.")
_BLOCK = re.compile(r"blocks\.(\d{1,4})\.layers\.(\d{1,4})\.(weight|bias)")
_MATRIX = re.compile(r"lm_heads\.(\d{1,4})\.weight")
_PUBLISHED = re.compile(r"(\d{1,4})\.(\d{1,4})\.(?:linear\.)?(weight|bias)")
_SHARED = "lm_head.weight"


def is_vllm(names: Iterable[str]) -> bool:
    """Whether tensors of these names are vLLM's blocks."""
    return any(_BLOCK.fullmatch(_PREFIX.sub("", name)) for name in names)


def from_vllm(found: dict[str, Tensor]) -> tuple[dict[str, Tensor], Tensor | None]:
    """(tensors by their published names, token map [draft vocabulary] or None); what is unknown keeps its name.

    Raises CheckpointError where a tensor is there with the prefix and without.
    """
    if twice := sorted(name for name in found if _PREFIX.match(name) and _PREFIX.sub("", name) in found):
        raise CheckpointError(f"Medusa heads do not fit: {_PREFIX.sub('', twice[0])} is there under two names")
    plain = {_PREFIX.sub("", name): tensor for name, tensor in found.items()}
    token_map = plain.pop(TOKEN_MAP, None)
    blocks = [match for name in plain if (match := _BLOCK.fullmatch(name))]
    num_heads, num_layers = (1 + max(int(match[group]) for match in blocks) for group in (1, 2))
    matrices = [name for name in plain if name == _SHARED or _MATRIX.fullmatch(name)]
    if len(matrices) == 1:
        shared = plain.pop(matrices[0])
        plain |= {f"lm_heads.{head}.weight": shared for head in range(num_heads)}
    if not any(match[3] == "bias" for match in blocks):
        weights = {match[0]: plain[match[0]] for match in blocks}
        plain |= {name.removesuffix("weight") + "bias": t.new_zeros(t.shape[:1]) for name, t in weights.items()}
    if token_map is not None:
        plain = {name: _cut(tensor, token_map) if _MATRIX.fullmatch(name) else tensor for name, tensor in plain.items()}
    return {_published(name, num_layers): tensor for name, tensor in plain.items()}, token_map


def vllm_name(published: str) -> str:
    """The name that vLLM's file has for a tensor of layouts A to C."""
    match = _PUBLISHED.fullmatch(published)
    if match is None:
        return published
    is_block = ".linear." in published
    return f"blocks.{match[1]}.layers.{match[2]}.{match[3]}" if is_block else f"lm_heads.{match[1]}.weight"


def _published(name: str, num_layers: int) -> str:
    if block := _BLOCK.fullmatch(name):
        return f"{block[1]}.{block[2]}.linear.{block[3]}"
    matrix = _MATRIX.fullmatch(name)
    return f"{matrix[1]}.{num_layers}.weight" if matrix else name


def _cut(matrix: Tensor, token_map: Tensor) -> Tensor:
    """The rows of a matrix that the map names; as it is where it is cut already, or where the map cannot be right."""
    is_list = token_map.dim() == 1 and token_map.dtype == torch.int64 and token_map.numel() > 0
    if not is_list or matrix.dim() != 2 or len(matrix) <= len(token_map) or int(token_map.min()) < 0:
        return matrix
    return matrix[token_map] if int(token_map.max()) < len(matrix) else matrix
