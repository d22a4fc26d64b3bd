"""EAGLE's drafter: one decoder layer that continues the target's own hidden states, token by token.

Source: EAGLE (arXiv 2401.15077) section 4 and `eagle/model/cnets1.py` of SafeAILab/EAGLE; the reduced draft
vocabulary (`d2t`) is EAGLE-3's. The layer is transformers' `LlamaDecoderLayer`. What EAGLE-3's drafter shares with it
is in `DrafterShape` and `FeatureDrafter`.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaDecoderLayer, LlamaRotaryEmbedding

from explorer.models.attention import CACHE, LAYOUT
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.flat import FlatLayers
from kernels.tree_attention.inputs import IN_ORDER


@dataclass(frozen=True)
class DrafterShape:
    """Shape of a drafter's decoder layer and vocabulary. `draft_vocab_size` None: it drafts over the full vocabulary.

    head_dim None: the hidden size over the heads, as everywhere but in some EAGLE-3 drafters.
    """

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    num_layers: int = 1
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    qkv_bias: bool = False
    max_position_embeddings: int = 2048
    hidden_act: str = "silu"
    draft_vocab_size: int | None = None
    head_dim: int | None = None

    def to_llama(self) -> LlamaConfig:
        """The same shape as transformers wants it; attention is SDPA because every mask is given explicitly."""
        return LlamaConfig(
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            num_attention_heads=self.num_attention_heads,
            num_key_value_heads=self.num_key_value_heads,
            head_dim=self.head_dim,
            num_hidden_layers=self.num_layers,
            vocab_size=self.vocab_size,
            rms_norm_eps=self.rms_norm_eps,
            max_position_embeddings=self.max_position_embeddings,
            hidden_act=self.hidden_act,
            rope_parameters={"rope_type": "default", "rope_theta": self.rope_theta},
            attn_implementation="sdpa",
        )


@dataclass(frozen=True)
class EagleConfig(DrafterShape):
    """Shape of an EAGLE-1/2 drafter."""

    fc_bias: bool = True


class DraftCache:
    """Keys and values of the drafter's layers, [1, kv_heads, length, head_dim] each, appended to and cut back."""

    layout = IN_ORDER

    def __init__(self) -> None:
        self._layers: list[tuple[Tensor, Tensor]] = []

    @property
    def length(self) -> int:
        """Pairs of (feature, token) held, before any that a running forward is adding."""
        return self._layers[0][0].shape[2] if self._layers else 0

    def truncate(self, length: int) -> None:
        """Keep the first `length` entries; the rest (predicted features of a finished draft) are forgotten."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot truncate a draft cache of {self.length} entries to {length}")
        self._layers = [(keys[:, :, :length], values[:, :, :length]) for keys, values in self._layers]

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, **_unused: object) -> tuple[Tensor, Tensor]:
        """What transformers' attention calls."""
        return self.write(layer_idx, keys, values)

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append along the length, return everything held for the layer."""
        if layer == len(self._layers):
            self._layers.append((keys, values))
        else:
            held_keys, held_values = self._layers[layer]
            self._layers[layer] = (torch.cat([held_keys, keys], 2), torch.cat([held_values, values], 2))
        return self._layers[layer]


PairCache: TypeAlias = DraftCache | TreeCache  # of a drafter: the second never moves, see explorer.models.draft_cache


class FeatureDrafter(nn.Module):
    """What EAGLE's drafters share: pairs of a token and the feature of the position before it become features.

    The target's embedding is bound, not owned: it is no parameter and not in the state dict. With a reduced draft
    vocabulary the state dict holds `d2t`: target id = draft id + d2t[draft id].
    """

    config: DrafterShape
    embedding: Tensor
    d2t: Tensor

    def __init__(self, config: DrafterShape) -> None:
        super().__init__()
        self.config = config
        self.rotary = LlamaRotaryEmbedding(config.to_llama())
        self.fixed_drafts: dict[Any, Any] = {}  # by shape of tree, see explorer.methods.fixed_draft
        self.register_buffer("embedding", torch.empty(0), persistent=False)
        if config.draft_vocab_size is not None:
            self.register_buffer("d2t", torch.zeros(config.draft_vocab_size, dtype=torch.int64))

    def forward(
        self, tokens: Tensor, features: Tensor, positions: Tensor, mask: Tensor | None, cache: PairCache | None
    ) -> Tensor:
        """Predicted features [R, H] for tokens [R], each paired with the feature [R, H] of the position before it.

        positions [R]: one less than the token's own position in the target. mask [R, past + R] bool, True where a
        row may look; None is causal. The rows' keys and values are appended to the cache.
        """
        length = cache.length if cache is not None else 0
        if mask is None and length:
            rows = tokens.shape[0]
            mask = torch.ones(rows, length + rows, dtype=torch.bool, device=tokens.device).tril(length)
        batched_mask = mask[None, None] if mask is not None else None
        return self.predict(tokens[None], features[None], positions[None], batched_mask, cache)[0]

    @abstractmethod
    def predict(
        self,
        tokens: Tensor,
        features: Tensor,
        positions: Tensor,
        mask: Tensor | None = None,
        cache: PairCache | None = None,
    ) -> Tensor:
        """The same over a batch: tokens [B, T], features [B, T, H], positions [B, T], mask [B or 1, 1, T, past + T]."""

    @abstractmethod
    def flatten(self) -> None:
        """Run fused and packed layers as one loop from now on, where such a loop stands for them."""

    @abstractmethod
    def logits(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., draft vocabulary]; ids of the last dimension are draft ids (see `to_target`)."""

    @torch.inference_mode()
    def probe(self) -> Tensor:
        """Predicted features [1, R, H] for some pairs: a pass to compare by."""
        tokens = torch.arange(min(4, self.config.vocab_size), device=self.embedding.device)
        features = self.embedding[tokens.flip(0)]
        return self.predict(tokens[None], features[None], tokens[None])

    def guess_next(self, token_ids: Tensor, features: Tensor, lm_head: object) -> Tensor:
        """What the drafter takes for the token after each of tokens 1..n-1: target ids [n - 1].

        token_ids [n] and the target's features over them, [n, H]; the drafter has an LM head bound, or its own.
        """
        positions = torch.arange(len(token_ids) - 1, device=token_ids.device)
        predicted = self(token_ids[1:], features[:-1], positions, None, None)
        return self.to_target(self.logits(predicted).argmax(dim=-1))

    def to_target(self, draft_ids: Tensor) -> Tensor:
        """Target token ids of draft ids, any shape; the same ids when the draft vocabulary is the full one."""
        if self.config.draft_vocab_size is None:
            return draft_ids
        return draft_ids + self.d2t[draft_ids]

    @property
    def cache_shape(self) -> CacheShape:
        """Of what its layers keep of each pair."""
        config = self.config
        head_dim = config.head_dim or config.hidden_size // config.num_attention_heads
        return CacheShape(config.num_layers, config.num_key_value_heads, head_dim)

    def attend_with(self, name: str) -> None:
        """Use another registered attention (explorer.models.attention) where transformers' own modules run."""
        for module in self.modules():
            if isinstance(module, LlamaAttention):
                module.config._attn_implementation = name

    @property
    def num_draft_tokens(self) -> int:
        """Tokens the drafter can propose: its draft vocabulary, or the whole one."""
        return self.config.draft_vocab_size or self.config.vocab_size

    def to_draft(self, token: int) -> int | None:
        """The draft id of a target token, None where the draft vocabulary lacks it."""
        if self.config.draft_vocab_size is None:
            return token
        targets = self.to_target(torch.arange(self.config.draft_vocab_size, device=self.d2t.device))
        found = (targets == token).nonzero().flatten().tolist()
        return found[0] if found else None


def add_biases(attention: Any) -> None:
    """Give the query, key and value projections of an attention module biases, the output projection none.

    LlamaConfig.attention_bias would give all four one, which EAGLE-Qwen2 has not.
    """
    for name in ("q_proj", "k_proj", "v_proj"):
        old = getattr(attention, name)
        setattr(attention, name, nn.Linear(old.in_features, old.out_features, bias=True))


class EagleDrafter(FeatureDrafter):
    """`fc(cat(embedding, feature))` and the decoder layers; the target's LM head reads the result directly.

    Layer 0 has no input norm and nothing is normed at the end. The target's LM head is bound as its embedding is.
    """

    config: EagleConfig
    draft_head: Tensor

    def __init__(self, config: EagleConfig) -> None:
        super().__init__(config)
        llama = config.to_llama()
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=config.fc_bias)
        self.layers = nn.ModuleList(LlamaDecoderLayer(llama, index) for index in range(config.num_layers))
        self.layers[0].input_layernorm = nn.Identity()
        self.flat: FlatLayers | None = None  # what runs in place of the layers once they are fused and packed
        if config.qkv_bias:
            for layer in self.layers:
                add_biases(layer.self_attn)
        self.register_buffer("draft_head", torch.empty(0), persistent=False)

    def bind(self, embedding: Tensor, lm_head: Tensor) -> None:
        """Lend the embedding [V, H] (the checkpoint's own if it has one) and the target's LM head [V, H].

        With a full draft vocabulary both stay references; a reduced one gathers its own rows of the head once, so
        call this after the state dict, which holds `d2t`, was loaded.
        """
        self.embedding = embedding.detach()
        head = lm_head.detach()
        if self.config.draft_vocab_size is not None:
            head = head[self.to_target(torch.arange(self.config.draft_vocab_size, device=head.device))]
        self.draft_head = head

    def predict(
        self,
        tokens: Tensor,
        features: Tensor,
        positions: Tensor,
        mask: Tensor | None = None,
        cache: PairCache | None = None,
    ) -> Tensor:
        """The same over a batch: tokens [B, T], features [B, T, H], positions [B, T], mask [B or 1, 1, T, past + T]."""
        embedded = nn.functional.embedding(tokens, self.embedding)
        hidden: Tensor = self.fc(torch.cat([embedded.to(features.dtype), features], dim=-1))
        rotation, layout = self.rotary(hidden, positions), IN_ORDER if cache is None else cache.layout
        if self.flat is not None:
            rows = None if mask is None else mask[0, 0]
            return self.flat(hidden, rotation, rows, None if cache is None else cache.write, layout)
        for layer in self.layers:
            hidden = layer(hidden, attention_mask=mask, position_embeddings=rotation, **{CACHE: cache, LAYOUT: layout})
        return hidden

    def flatten(self) -> None:
        """Run fused and packed layers as one loop from now on, where such a loop stands for them."""
        self.flat = FlatLayers(self.layers) if FlatLayers.can_run(self.layers) else None

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., H] -> [..., draft vocabulary]; ids of the last dimension are draft ids (see `to_target`)."""
        return nn.functional.linear(hidden, self.draft_head.to(hidden.dtype))

    def head_layer(self) -> nn.Linear:
        """The bound LM head as a layer, [H] -> [draft vocabulary], for a caller that lays it out anew."""
        layer = nn.Linear(self.config.hidden_size, self.num_draft_tokens, bias=False, device="meta")
        layer.weight = nn.Parameter(self.draft_head, requires_grad=False)
        return layer
