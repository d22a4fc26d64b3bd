"""Many conversations decoded side by side, each at its own length, by one transformers model."""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import CacheLayerMixin


class _SlotLayer(CacheLayerMixin):
    """One layer's keys and values [slots, kv_heads, capacity, head_dim]; each slot writes at its own position."""

    def __init__(self, owner: "SlotDecoder") -> None:
        super().__init__()
        self._owner = owner

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate for the slots that the first step brings."""
        slots, heads, _, dim = key_states.shape
        self.keys = key_states.new_zeros(slots, heads, self._owner.capacity, dim)
        self.values = torch.zeros_like(self.keys)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Write [slots, kv_heads, 1, head_dim] at each slot's position; returns everything up to the longest slot."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        slots = torch.arange(len(key_states), device=key_states.device)
        self.keys[slots, :, self._owner.lengths] = key_states[:, :, 0]
        self.values[slots, :, self._owner.lengths] = value_states[:, :, 0]
        end = self._owner.longest
        return self.keys[:, :, :end], self.values[:, :, :end]

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
    """One token per slot and step. A slot that ends is restarted at length 0: its old keys are masked, not erased."""

    def __init__(self, model: Any, num_slots: int, capacity: int) -> None:
        model.set_attn_implementation("sdpa")
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
            cache=self._cache,
            use_cache=True,
        )
        self.lengths += 1
        rows = output.last_hidden_state[torch.tensor(wanted, dtype=torch.int64, device=device), 0]
        logits: Tensor = self._model.get_output_embeddings()(rows)
        return logits.float().cpu()

    def restart(self, slot: int) -> None:
        """Give a slot to a new conversation."""
        self.lengths[slot] = 0

    def keep(self, slots: list[int]) -> None:
        """Drop all other slots."""
        index = torch.tensor(slots, dtype=torch.int64, device=self.lengths.device)
        self.lengths = self.lengths[index]
        for layer in self._cache.layers:
            layer.select(index)
