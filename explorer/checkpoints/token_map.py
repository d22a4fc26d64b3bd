"""A file of ours beside Medusa heads of layout B, which other readers leave alone: the tokens the heads draft from.

Read through the rows of the target's LM head for frequent tokens alone, the heads of a small model draft in half the
time. vLLM's layout has such a map among its tensors, under the same name.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from explorer.checkpoints.files import Report, read_tensors
from explorer.checkpoints.vllm_medusa import TOKEN_MAP

TOKEN_MAP_FILE = "token_map.safetensors"  # one tensor of that name: [draft vocabulary] int64 target ids


def read_token_map(folder: Path, own_lm: bool, report: Report) -> Tensor | None:
    """The map beside heads, None where there is none; what is wrong with the file goes into ``report``.

    own_lm: whether the heads have matrices of their own, which a file beside them cannot cut.
    """
    path = folder / TOKEN_MAP_FILE
    if not path.is_file():
        return None
    found = read_tensors([path])
    if own_lm or set(found) != {TOKEN_MAP}:
        report.add(f"{TOKEN_MAP_FILE} must hold {TOKEN_MAP} alone, for heads that have no matrix of their own")
        return None
    return found[TOKEN_MAP]
