"""Many conversations decoded side by side, each at its own length, by one transformers model."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, Cache
from transformers.cache_utils import CacheLayerMixin
from transformers.masking_utils import sdpa_mask

from explorer.models.attention import CACHE

_ATTENTION = "slot_attention"


def _attend(
    _module: nn.Module, query: Tensor, keys: Tensor, value: Tensor, attention_mask: Tensor, **options: Any
) -> tuple[Tensor, None]:
    """One query per slot [S, heads, 1, D] over keys [S, kv_heads, D, L] and values [S, kv_heads, L, D].

    The query heads of a key head are rows of one product, so that no key is copied for them; keys lie transposed
    because the CPU multiplies that way half again as fast.
    """
    slots, heads, _, dim = query.shape
    grouped = query.reshape(slots, keys.shape[1], -1, dim)
    scores = torch.matmul(grouped * options["scaling"], keys)
    weights = scores.masked_fill(~attention_mask, float("-inf")).softmax(-1)
    return torch.matmul(weights, value).reshape(slots, 1, heads, dim), None


AttentionInterface.register(_ATTENTION, _attend)
AttentionMaskInterface.register(_ATTENTION, sdpa_mask)


class _SlotLayer(CacheLayerMixin):
    """One layer's keys [slots, kv_heads, head_dim, capacity] and values [slots, kv_heads, capacity, head_dim]."""

    def __init__(self, owner: "SlotDecoder") -> None:
        super().__init__()
        self._owner = owner

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate for the slots that the first step brings."""
        slots, heads, _, dim = key_states.shape
        self.keys = key_states.new_zeros(slots, heads, dim, self._owner.capacity)
        self.values = value_states.new_zeros(slots, heads, self._owner.capacity, dim)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write [slots, kv_heads, 1, head_dim] at each slot's position; returns everything up to the longest slot."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        slots = torch.arange(len(key_states), device=key_states.device)
        self.keys[slots, :, :, self._owner.lengths] = key_states[:, :, 0]
        self.values[slots, :, self._owner.lengths] = value_states[:, :, 0]
        end = self._owner.longest
        return self.keys[..., :end], self.values[:, :, :end]

    def get_seq_length(self) -> int:
        """Tokens of the longest slot before this step."""
        return self._owner.longest - 1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(number of keys, offset) of a step."""
        return self._owner.longest, 0

    def get_max_length(self) -> int:
        """Tokens that a slot can hold."""
        return self._owner.capacity

    def select(self, slots: Tensor) -> None:
        """Keep these slots only."""
        self.keys, self.values = self.keys[slots], self.values[slots]


class SlotDecoder:
    """One token per slot and step. The model is taken over: its attention afterwards serves slots only."""

    def __init__(self, model: Any, num_slots: int, capacity: int) -> None:
        model.set_attn_implementation(_ATTENTION)
        self._model = model
        self.capacity = capacity
        self.lengths = torch.zeros(num_slots, dtype=torch.int64, device=model.device)
        self._cache = Cache(layers=[_SlotLayer(self) for _ in range(model.config.num_hidden_layers)])

    @property
    def longest(self) -> int:
        """Keys that the longest slot has in this step, its new one included."""
        return int(self.lengths.max()) + 1

    @torch.inference_mode()
    def step(self, tokens: Tensor, wanted: list[int]) -> Tensor:
        """Feed tokens [slots]; logits [len(wanted), V] float32 of the wanted slots."""
        device = self._model.device
        keys = torch.arange(self.longest, device=device)
        mask = (keys[None] <= self.lengths[:, None])[:, None, None]
        body = self._model.get_decoder()
        output = body(
            input_ids=tokens[:, None].to(device),
            attention_mask=mask,
            position_ids=self.lengths[:, None],
            use_cache=True,
            **{CACHE: self._cache},
        )
        self.lengths = (self.lengths + 1).clamp(max=self.capacity - 1)  # a slot that has ended may be fed on
        rows = output.last_hidden_state[torch.tensor(wanted, dtype=torch.int64, device=device), 0]
        logits: Tensor = self._model.get_output_embeddings()(rows)
        return logits.float().cpu()

    def keep(self, slots: list[int]) -> None:
        """Drop all other slots."""
        index = torch.tensor(slots, dtype=torch.int64, device=self.lengths.device)
        self.lengths = self.lengths[index]
        for layer in self._cache.layers:
            layer.select(index)
