"""EAGLE-3's drafter: one decoder layer over tokens and what three layers of the target hold.

Source: EAGLE-3 (arXiv 2503.01840) section 3 and `eagle/model/cnets.py` of SafeAILab/EAGLE. Attention, MLP and norms
are transformers' Llama ones; only the attention's inputs are twice as wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP, LlamaRMSNorm

from explorer.models.attention import CACHE, LAYOUT
from explorer.models.eagle_layer import DrafterShape, FeatureDrafter, PairCache, add_biases
from explorer.models.flat import FlatMidlayer
from kernels.tree_attention.inputs import IN_ORDER


@dataclass(frozen=True)
class Eagle3Config(DrafterShape):
    """Shape of an EAGLE-3 drafter.

    feature_layers: the decoder layers of the target whose inputs are its features. target_hidden_size None: the
    target's hidden states are as wide as the drafter's. norm_before_residual: attention is added to the normed hidden
    state and not to the bare one, as vLLM and speculators know it; the published layer adds to the bare one.
    """

    feature_layers: tuple[int, ...] = ()
    target_hidden_size: int | None = None
    norm_before_residual: bool = False

    @property
    def feature_size(self) -> int:
        """Width of a true feature: the chosen hidden states side by side."""
        return len(self.feature_layers) * (self.target_hidden_size or self.hidden_size)


class Midlayer(nn.Module):
    """The decoder layer: attention reads normed embedding and normed hidden state, the residual the bare one.

    With ``norm_before_residual`` the residual is the normed one too.
    """

    def __init__(self, llama: LlamaConfig, has_biases: bool, norm_before_residual: bool = False) -> None:
        super().__init__()
        size = llama.hidden_size
        self.norm_before_residual = norm_before_residual
        self.self_attn = LlamaAttention(llama, layer_idx=0)
        for name in ("q_proj", "k_proj", "v_proj"):
            setattr(self.self_attn, name, nn.Linear(2 * size, getattr(self.self_attn, name).out_features, bias=False))
        if has_biases:
            add_biases(self.self_attn)
        self.mlp = LlamaMLP(llama)
        self.hidden_norm = LlamaRMSNorm(size, eps=llama.rms_norm_eps)
        self.input_layernorm = LlamaRMSNorm(size, eps=llama.rms_norm_eps)
        self.post_attention_layernorm = LlamaRMSNorm(size, eps=llama.rms_norm_eps)

    def forward(
        self,
        embedded: Tensor,
        hidden: Tensor,
        rotation: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: PairCache | None,
    ) -> Tensor:
        """[B, T, H] from embeddings and hidden states [B, T, H] each."""
        layout = IN_ORDER if cache is None else cache.layout
        normed = self.hidden_norm(hidden)
        inputs = torch.cat([self.input_layernorm(embedded), normed], dim=-1)
        attended, _ = self.self_attn(
            inputs, position_embeddings=rotation, attention_mask=mask, **{CACHE: cache, LAYOUT: layout}
        )
        hidden = (normed if self.norm_before_residual else hidden) + attended
        output: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return output


class Eagle3Drafter(FeatureDrafter):
    """True features go through `fc`; what the layer makes of them is read through an own norm and LM head.

    What it recycles as the next feature is the layer's output before that norm, and it passes `fc` no more.
    """

    config: Eagle3Config

    def __init__(self, config: Eagle3Config) -> None:
        super().__init__(config)
        self.fc = nn.Linear(config.feature_size, config.hidden_size, bias=False)
        self.midlayer = Midlayer(config.to_llama(), config.qkv_bias, config.norm_before_residual)
        self.norm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, self.num_draft_tokens, bias=False)
        self.flat: FlatMidlayer | None = None  # what runs in place of the layer once it is fused and packed

    def bind(self, embedding: Tensor) -> None:
        """Lend the embedding [V, H]: the checkpoint's own if it has one, else the target's."""
        self.embedding = embedding.detach()

    def combine(self, features: Tensor) -> Tensor:
        """True features [..., F] as the layer reads them, [..., H]; its own predictions are that already."""
        combined: Tensor = self.fc(features)
        return combined

    def predict(
        self,
        tokens: Tensor,
        features: Tensor,
        positions: Tensor,
        mask: Tensor | None = None,
        cache: PairCache | None = None,
    ) -> Tensor:
        """Over a batch: tokens [B, T], features [B, T, H], positions [B, T], mask [B or 1, 1, T, past + T]."""
        embedded, rotation = nn.functional.embedding(tokens, self.embedding), self.rotary(features, positions)
        embedded = embedded.to(features.dtype)
        if self.flat is not None:
            rows = None if mask is None else mask[0, 0]
            write, layout = (None, IN_ORDER) if cache is None else (cache.write, cache.layout)
            return self.flat(embedded, features, rotation, rows, write, layout)
        output: Tensor = self.midlayer(embedded, features, rotation, mask, cache)
        return output

    def flatten(self) -> None:
        """Run the fused and packed layer as a row of operators from now on, where such a row stands for it."""
        self.flat = FlatMidlayer(self.midlayer) if FlatMidlayer.can_run(self.midlayer) else None

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., draft vocabulary]; ids of the last dimension are draft ids (see `to_target`)."""
        logits: Tensor = self.lm_head(self.norm(hidden))
        return logits

    @torch.inference_mode()
    def probe(self) -> Tensor:
        """Logits [1, R, draft vocabulary] for some pairs: a pass to compare by that everything takes part in."""
        return self.logits(super().probe())

    def guess_next(self, token_ids: Tensor, features: Tensor, lm_head: object) -> Tensor:
        """As of FeatureDrafter, from true features [n, F]."""
        return super().guess_next(token_ids, self.combine(features), lm_head)
