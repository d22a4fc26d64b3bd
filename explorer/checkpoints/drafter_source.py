"""A drafter as its files have it, bit for bit, checked against its target: what other layouts are written from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.eagle3 import HEAD, IS_DRAFTED, load_eagle3
from explorer.checkpoints.eagle_files import EMBEDDING, TOKEN_MAP, find_eagle3
from explorer.checkpoints.files import Report, locate, read_config, read_tensors, weight_files
from explorer.checkpoints.medusa import has_heads, load_medusa, read_medusa
from explorer.checkpoints.speculators_eagle import from_speculators
from explorer.checkpoints.target_adapter import has_adapter
from explorer.checkpoints.target_ends import TargetEnds
from explorer.errors import CheckpointError
from explorer.models.eagle3_layer import Eagle3Config
from explorer.models.eagle_layer import EagleConfig

_BLOCK = re.compile(r"\d+\.\d+\.linear\.(weight|bias)")


@dataclass(frozen=True)
class MedusaSource:
    """Medusa heads under their published names. base: what the target is called."""

    kind: ClassVar[str] = "medusa"
    tensors: dict[str, Tensor]
    token_map: Tensor | None
    num_heads: int
    num_blocks: int
    has_matrices: bool
    base: str
    ends: TargetEnds

    def is_block(self, name: str) -> bool:
        """Whether a tensor is a residual block's, and no LM matrix."""
        return _BLOCK.fullmatch(name) is not None

    def targets_head(self) -> Tensor:
        """The target's LM head [V, H] in the dtype of the heads."""
        return self.ends.lm_head.weight.detach().to(next(iter(self.tensors.values())).dtype)


@dataclass(frozen=True)
class _WithEmbedding:
    """What EAGLE drafters of every kind bring along. weights: without embedding and token map."""

    weights: dict[str, Tensor]
    embedding: Tensor | None
    token_map: Tensor | None
    base: str
    ends: TargetEnds

    def own_embedding(self) -> dict[str, Tensor]:
        """The embedding by its name where the drafter's differs from the target's; most files hold a mere copy."""
        if self.embedding is None:
            return {}
        borrowed = self.ends.embed_tokens.weight
        is_copy = torch.equal(self.embedding, borrowed.to(self.embedding.dtype))
        return {} if is_copy else {EMBEDDING: self.embedding}

    def draft_ids(self) -> Tensor | None:
        """Target ids of the draft vocabulary, [draft vocabulary], None for the whole one."""
        return None if self.token_map is None else self.token_map + torch.arange(len(self.token_map))


@dataclass(frozen=True)
class EagleSource(_WithEmbedding):
    """An EAGLE-1/2 drafter under its published names."""

    kind: ClassVar[str] = "eagle"
    config: EagleConfig

    def embedding_or_targets(self) -> Tensor:
        """The drafter's own embedding, or the target's, in the drafter's dtype, where it has none."""
        if self.embedding is not None:
            return self.embedding
        return self.ends.embed_tokens.weight.detach().to(self.weights["fc.weight"].dtype)


@dataclass(frozen=True)
class Eagle3Source(_WithEmbedding):
    """An EAGLE-3 drafter under its published names."""

    kind: ClassVar[str] = "eagle3"
    config: Eagle3Config


DrafterSource = MedusaSource | EagleSource | Eagle3Source


def read_drafter(source: str, ends: TargetEnds) -> DrafterSource:
    """Read a drafter of any layout we read, strictly; raises one CheckpointError that lists what does not fit."""
    folder = locate(source, "drafter", ("medusa_lm_head.*", "*.safetensors", "*.bin"))
    base = _base(folder) or ends.name
    if has_adapter(str(folder)):
        raise CheckpointError(
            f"{source} adapts its target, which no layout holds: without its adapter the target is another model"
        )
    if has_heads(folder):
        module = load_medusa(source, ends).module
        tensors, token_map = read_medusa(source)
        return MedusaSource(tensors, token_map, module.num_heads, module.num_layers, module.own_lm, base, ends)
    _, tensors = from_speculators(
        read_config(folder), read_tensors(weight_files(folder)), Report(f"drafter {source!r}")
    )
    if find_eagle3(tensors):
        return _read_eagle3(source, tensors, base, ends)
    config = load_eagle(source, ends).module.config
    wanted = {name: t for name, t in tensors.items() if name.startswith(("fc.", "layers.")) and "inv_freq" not in name}
    return EagleSource(wanted, tensors.get(EMBEDDING), tensors.get(TOKEN_MAP), base, ends, config)


def _read_eagle3(source: str, tensors: dict[str, Tensor], base: str, ends: TargetEnds) -> Eagle3Source:
    module = load_eagle3(source, ends).module
    config = module.config
    left_out = (EMBEDDING, TOKEN_MAP, IS_DRAFTED)
    wanted = {name: t for name, t in tensors.items() if name not in left_out and "inv_freq" not in name}
    if HEAD not in wanted:  # no other layout shares the target's
        wanted[HEAD] = module.lm_head.weight.detach().to(wanted["fc.weight"].dtype)
    token_map = None if config.draft_vocab_size is None else tensors[TOKEN_MAP]
    return Eagle3Source(wanted, tensors.get(EMBEDDING), token_map, base, ends, config)


def _base(folder: Path) -> str | None:
    """What the drafter's own config calls its target."""
    try:
        config = read_config(folder)
    except CheckpointError:
        return None  # heads need none
    verifier = config.get("speculators_config")
    named = verifier.get("verifier") if isinstance(verifier, dict) else None
    told = named.get("name_or_path") if isinstance(named, dict) else config.get("base_model_name_or_path")
    return told if isinstance(told, str) and told else None
