"""Recipe: a draft model made of the target's own first layers, trained on the target's distribution.

It keeps the target's embedding, LM head and tokenizer, so only the layers and the final norm are its own. The wide part
of a layer, its MLP, may be cut to the hidden units that weigh most. Distillation on the target's own text: DistillSpec,
Y. Zhou et al., arXiv 2310.08461, with the target's distribution as in its forward-KL form.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.training.candidates import CandidateSampler
from explorer.training.dataset import Batch, FeatureSet
from explorer.training.teacher import HeldOut, soft_cross_entropy, top_tokens

_MLP = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class DraftModelOptions:
    """Layers taken from the target's bottom, hidden units kept of each MLP, and the softmax's share of the vocabulary.

    The defaults make 8.9 MB of float16 out of SmolLM2-135M-Instruct: 2 of its 30 layers, 768 of 1536 units.
    """

    num_layers: int = 2
    intermediate_size: int = 768
    num_frequent: int = 1536
    num_sampled: int = 1024


class FirstLayers(nn.Module):
    """The first layers of a transformers decoder under its own final norm; tokens are embedded by the target.

    decoder: the target's body (Llama-like: gated MLPs named gate_proj, up_proj, down_proj); its weights are copied.
    The state dict has a published checkpoint's names and lacks the embedding, which is lent, not owned.
    """

    embedding: Tensor

    def __init__(self, decoder: Any, options: DraftModelOptions) -> None:
        super().__init__()
        config = copy.deepcopy(decoder.config)
        config.num_hidden_layers = min(options.num_layers, config.num_hidden_layers)
        config.intermediate_size = min(options.intermediate_size, config.intermediate_size)
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[: config.num_hidden_layers]
        self.config = config
        self.model = type(decoder)(config)
        self.model.set_input_embeddings(None)  # never called: the forward pass is given embeddings
        self.model.load_state_dict(_first_weights(decoder, self.model, config.intermediate_size))
        self.model.set_attn_implementation("sdpa")
        self.model.float()
        embedding = decoder.get_input_embeddings().weight.detach().float().cpu()
        self.register_buffer("embedding", embedding, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """[B, T] ids, right-padded, to [B, T, H] hidden states after the final norm: what the LM head reads."""
        embedded = nn.functional.embedding(tokens, self.embedding)
        hidden: Tensor = self.model(inputs_embeds=embedded, use_cache=False).last_hidden_state
        return hidden


def _first_weights(decoder: Any, body: nn.Module, intermediate_size: int) -> dict[str, Tensor]:
    """The target's tensors for ``body``'s names, MLPs cut to the units whose three weight vectors are longest."""
    stored = decoder.state_dict()
    weights = {name: stored[name].detach().float().clone() for name in body.state_dict()}
    for first in [name for name in weights if name.endswith(f"{_MLP[0]}.weight")]:
        gate, up, down = (first.replace(_MLP[0], part) for part in _MLP)
        lengths = weights[gate].norm(dim=1) * weights[up].norm(dim=1) * weights[down].norm(dim=0)  # [units]
        kept = lengths.topk(intermediate_size).indices.sort().values
        weights |= {gate: weights[gate][kept], up: weights[up][kept], down: weights[down][:, kept]}
    return weights


class DraftModelRecipe:
    """Position t has read the tokens up to t and learns the target's whole distribution for token t + 1."""

    def __init__(
        self, decoder: Any, lm_head: Tensor, frequent: Tensor, held_out: FeatureSet, options: DraftModelOptions
    ) -> None:
        """lm_head: [V, H]; frequent: int64 ids, the most frequent first."""
        self.options = options
        self.network = FirstLayers(decoder, options)
        self._lm_head = lm_head
        self._sampler = CandidateSampler(lm_head.shape[0], frequent[: options.num_frequent], options.num_sampled)
        self._held_out = HeldOut(held_out, lm_head)

    def loss(self, batch: Batch, generator: torch.Generator, progress: float) -> Tensor:
        """Cross-entropy against the target's softmax over a part of the vocabulary, mean over answer tokens."""
        candidates = self._sampler.draw(batch.tokens, generator)
        rows, mask = self._lm_head[candidates.ids], batch.answer_mask(1)
        with torch.no_grad():
            wanted = (batch.features[mask] @ rows.T + candidates.correction).softmax(-1)
        return soft_cross_entropy(self.network(batch.tokens)[mask] @ rows.T + candidates.correction, wanted)

    def evaluate(self) -> dict[str, float]:
        """Top-1 agreement with the target; the score."""
        return {"score": self.agreement(num_batches=4)}

    @torch.inference_mode()
    def agreement(self, num_batches: int | None = None) -> float:
        """Share of held-out answer tokens at which its first choice is the target's: alpha of a greedy chain."""
        hits = count = 0
        for batch, best in self._held_out.pairs(num_batches):
            mask = batch.answer_mask(1)
            guesses = top_tokens(self.network(batch.tokens)[mask], self._lm_head, 1)[:, 0]
            hits += int((guesses == best[mask]).sum())
            count += int(mask.sum())
        return hits / max(count, 1)
