"""A target's embedding and LM head alone: what a drafter is checked against without loading the target."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from explorer.checkpoints.files import Report, read_tensors, weight_files
from explorer.checkpoints.target import embedding_names, find_folder, read_model_config


@dataclass(frozen=True)
class TargetEnds:
    """The facts that a drafter has to fit (TargetFacts), in the dtype of the files, on the CPU."""

    name: str
    architectures: tuple[str, ...]
    max_positions: int
    num_layers: int
    embed_tokens: nn.Embedding
    lm_head: nn.Linear

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.lm_head.weight.device

    @property
    def hidden_size(self) -> int:
        """Width of a hidden state."""
        return int(self.embed_tokens.embedding_dim)

    @property
    def vocab_size(self) -> int:
        """Rows of the LM head."""
        return int(self.lm_head.weight.shape[0])

    @property
    def dtype(self) -> torch.dtype:
        """Of the LM head's weights."""
        return self.lm_head.weight.dtype


def read_target_ends(source: str) -> TargetEnds:
    """Read them from a preset's source, a directory or a hub id; raises CheckpointError or FetchError."""
    folder, name = find_folder(source)
    what = f"target {name!r}"
    config = read_model_config(folder, what)
    text = config.get_text_config()
    wanted = embedding_names(config)
    found = read_tensors(weight_files(folder), wanted.__contains__)
    heads = [tensor for key, tensor in found.items() if "lm_head" in key or "output" in key]
    embeddings = [tensor for key, tensor in found.items() if "embed" in key or "wte" in key]
    report = Report(what)
    if not embeddings or not all(t.dim() == 2 and t.is_floating_point() for t in (*heads, *embeddings)):
        report.add(f"its embedding is not where it is looked for ({', '.join(sorted(wanted))})")
    report.raise_if_any()
    embedding, head = embeddings[0], (heads or embeddings)[0]  # tied, the files hold one of them
    layer = nn.Linear(head.shape[1], head.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(head, requires_grad=False)
    return TargetEnds(
        name,
        tuple(getattr(config, "architectures", None) or ()),
        int(text.max_position_embeddings),
        int(text.num_hidden_layers),
        nn.Embedding.from_pretrained(embedding, freeze=True),
        layer,
    )
