"""The target: prompt pass, tree pass, commit. It owns the model and its cache; batch 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.errors import CheckpointError, DeviceError
from explorer.models.attention import CACHE, LAYOUT
from explorer.models.batch_cache import BatchCache
from explorer.models.cache import CacheShape, TreeCache
from explorer.models.flat import FlatDecoder, flatten
from explorer.models.fused import fuse, probe_decoder
from explorer.models.graphs import Capture
from explorer.models.layer_inputs import layer_inputs
from explorer.models.packed import is_packable, pack, pack_linears
from explorer.models.perturbation import perturbed
from explorer.models.slot_cache import SlotCache
from explorer.models.split import SPLIT, SplitCache, split_of
from explorer.theory import ModelShape
from explorer.tree import DraftTree
from kernels.dispatch import pick
from kernels.tree_attention.inputs import unpack_mask

_SELF_CHECK_TOLERANCE = 1e-3  # logits of two routes through the same float32 weights; a missing soft-cap is far larger


class TargetOutput(NamedTuple):
    """One pass over R rows.

    logits: [R, V] (the prompt pass: [1, V], the last position only). hidden: [R, H] after the final norm, what the LM
    head reads. layers: layer index -> [R, H] hidden states entering that layer, for methods that ask for them.
    """

    logits: Tensor
    hidden: Tensor
    layers: dict[int, Tensor]


class Target:
    """A causal language model with ordinary attention that verifies whole draft trees.

    model: a transformers causal LM whose attention implementation is ours (explorer.models.attention). stop_ids: every
    token that ends an answer. backend: what attention and cache run on, "naive" or "triton". The model is taken over:
    on a CPU its linear layers are replaced by packed ones. ``head`` is the LM head to call, ``lm_head`` the layer that
    holds its weight; a model that shares another's weight is given that one's ``head`` too: it is laid out once.
    numerics: "fast" here; explorer.bitwise has the other kind.
    """

    numerics = "fast"
    capture: Capture | None = None  # what drafters may capture their passes with, as those of this target are
    why_eager: str | None = None  # a reason where fixed passes were wanted and failed

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        stop_ids: frozenset[int],
        backend: str,
        head: nn.Module | None = None,
    ) -> None:
        config = model.config.get_text_config()
        self.name = name
        self.tokenizer = tokenizer
        self.stop_ids = stop_ids
        self.backend = backend
        self.context_limit: int = config.max_position_embeddings
        self.hidden_size: int = config.hidden_size
        self.embed_tokens: nn.Embedding = model.get_input_embeddings()
        self.lm_head: nn.Linear = model.get_output_embeddings()
        self.vocab_size: int = self.lm_head.weight.shape[0]
        self.num_parameters = sum(p.numel() for p in model.parameters())
        self.dtype: torch.dtype = self.lm_head.weight.dtype
        self.device: torch.device = self.lm_head.weight.device
        self._split = split_of(model)
        self._mask: Tensor | None = None  # of the last pass, as the model was handed it
        self._make_mask = pick("tree_mask", backend, self.device)
        heads: int = config.num_attention_heads
        self._num_heads = heads
        self._shape = CacheShape(
            num_layers=config.num_hidden_layers,
            num_kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
        )
        self._decoder = model.get_decoder()
        self._check_head(model)
        self._flat: FlatDecoder | None = None
        if is_packable(self.lm_head) and self._split is None:  # accelerate hangs on the modules that these replace
            fuse(self._decoder, self._attention(), partial(probe_decoder, self._decoder))
            pack_linears(self._decoder)
            self._flat = flatten(self._decoder)
        self.head = pack(self.lm_head) if head is None else head
        self.start(0)

    @property
    def model_shape(self) -> ModelShape:
        """What decides how much a pass reads and computes; an embedding table of its own is only looked up."""
        is_tied = self.embed_tokens.weight.data_ptr() == self.lm_head.weight.data_ptr()
        return ModelShape(
            num_weights=self.num_parameters - (0 if is_tied else self.embed_tokens.weight.numel()),
            num_bytes=self.dtype.itemsize,
            num_layers=self._shape.num_layers,
            num_heads=self._num_heads,
            num_kv_heads=self._shape.num_kv_heads,
            head_dim=self._shape.head_dim,
        )

    @property
    def execution(self) -> str:
        """How verify passes are launched: "eager", kernel by kernel; explorer.graphed has the other kind."""
        return "eager"

    @property
    def places(self) -> tuple[str, ...]:
        """Where the decoder layers' weights are kept, where that is more than the device."""
        return () if self._split is None else self._split.places

    @property
    def num_layers(self) -> int:
        """Decoder layers."""
        return self._shape.num_layers

    @property
    def length(self) -> int:
        """Tokens committed to the cache."""
        return self.cache.length

    @property
    def max_depth(self) -> int:
        """Of a row in the next tree pass: deeper, the token after it would have no position in the context."""
        return self.context_limit - 2 - self.length

    @property
    def last_mask(self) -> Tensor | None:
        """[R, L + R] bool: what the model was really handed in the last tree pass; None after any other."""
        mask = self._mask
        if mask is None or mask.dtype == torch.bool:
            return mask
        return functional.pad(unpack_mask(mask, len(mask)), (self.length, 0), value=True)  # until the commit

    def start(self, capacity: int, cache: str = "rows", layers: Sequence[int] = ()) -> None:
        """Forget everything and make room for ``capacity`` tokens (more are made when needed).

        cache: a commit moves the accepted "rows", or takes over their "slots" (explorer.models.slot_cache). layers:
        whose inputs every pass puts into ``TargetOutput.layers``, until the next start.
        """
        self._watched = tuple(layers)
        self._entered: dict[int, Tensor] = {}  # watched layer -> [B, R, H] of the last pass
        if self._split is not None:
            if cache == "slots":
                raise DeviceError(f"slots are for a target on one device, not for {SPLIT}: choose the cache rows")
            self.cache: TreeCache = SplitCache(self._shape, capacity, self.dtype, self._split.devices)
        elif cache == "slots":
            self.cache = SlotCache(self._shape, capacity, self.dtype, self.device)
        else:
            self.cache = TreeCache(self._shape, capacity, self.dtype, self.device, self.backend)

    def prefill(self, token_ids: Sequence[int]) -> TargetOutput:
        """The prompt pass: read [n] tokens and commit them. logits: [1, V] after the last one, hidden: [n, H]."""
        tokens = torch.tensor(token_ids, dtype=torch.int64)
        positions = torch.arange(self.length, self.length + len(tokens))
        hidden = self._pass(tokens, positions, None)
        self.cache.commit(range(len(tokens)))
        return self._output(self._logits(hidden[-1:]), hidden)

    def forward(self, tree: DraftTree) -> TargetOutput:
        """One pass over all rows of a tree; its keys and values wait behind the committed ones for ``commit``."""
        mask = None
        if len(tree) > 1:  # a single row sees everything, as in plain decoding
            mask = self._make_mask(tree.tree_mask, self.length)
        hidden = self._pass(tree.tokens, tree.positions(self.length), mask)
        return self._output(self._logits(hidden), hidden)

    def commit(self, rows: Sequence[int]) -> None:
        """Keep these rows of the last tree pass (a path from the root, ascending) and drop the rest."""
        self.cache.commit(rows)

    def guess_next(self, token_ids: Tensor, hidden: Tensor, lm_head: object) -> Tensor:
        """As a draft model: what it takes for the token after each of tokens 1..n-1, [n - 1], by reading [n] itself.

        hidden and lm_head are the verifying target's, which other drafters need. What it held before is gone.
        """
        self.start(len(token_ids))
        own = self.prefill(token_ids.tolist()).hidden
        self.start(0)
        with torch.inference_mode():
            guesses: Tensor = self.head(own[1:]).argmax(dim=-1)
        return guesses

    def roll_back(self, length: int) -> None:
        """Keep the first ``length`` committed tokens: a draft model reads its own guesses, and some of them fail."""
        self.cache.truncate(length)

    def perturbed(self, size: float) -> AbstractContextManager[int]:
        """While it is entered, noise on every matrix of the decoder's layers (explorer.models.perturbation)."""
        self._refuse_split("noise on its matrices")
        return perturbed(self._decoder, size)

    def batch(self, num_sequences: int, num_rows: int) -> BatchCache:
        """What is committed now, as the prefix of so many sequences, with room for a pass of ``num_rows`` each."""
        self._refuse_split("passes over several sequences")
        return BatchCache(self.cache, self._shape, num_sequences, num_rows)

    def forward_batch(self, tree: DraftTree, cache: BatchCache) -> Tensor:
        """Logits [B, R, V] of one pass over the same tree in each of a batch's B sequences; nothing of it is kept.

        To measure what batches cost: only the "naive" backend attends for several sequences at once.
        """
        cache.reserve(len(tree))
        mask = self._make_mask(tree.tree_mask, cache.length) if len(tree) > 1 else None
        hidden = self._states(tree.tokens.expand(cache.num_sequences, -1), tree.positions(cache.length), mask, cache)
        return self._logits(hidden)

    def run(
        self, tokens: Tensor, positions: Tensor, mask: Tensor | None, cache: TreeCache
    ) -> tuple[Tensor, Tensor, dict[int, Tensor]]:
        """Logits [R, V], hidden states [R, H] and what entered the watched layers of a pass that ``cache`` announced.

        tokens and positions [R], and the mask as the attention takes it, on the target's device.
        """
        hidden = self._states(tokens[None], positions, mask, cache)[0]
        return self._logits(hidden), hidden, {layer: states[0] for layer, states in self._entered.items()}

    def _pass(self, tokens: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        """Hidden states [R, H] of R rows, after the final norm."""
        self.cache.reserve(len(tokens))
        self._mask = mask
        return self._states(tokens[None], positions, mask, self.cache)[0]

    def _states(self, tokens: Tensor, positions: Tensor, mask: Tensor | None, cache: TreeCache) -> Tensor:
        """Hidden states [B, R, H] of tokens [B, R], all sequences at the same positions [R] and with the same mask."""
        self._entered = dict.fromkeys(self._watched, torch.empty(0))
        with torch.inference_mode():
            if self._flat is not None:
                return self._flat(tokens, positions, mask, cache.write, cache.layout, self._entered)
            with layer_inputs(self._decoder, self._entered):
                output = self._decoder(
                    input_ids=tokens.to(self.device),
                    position_ids=positions[None].to(self.device),
                    attention_mask=None if mask is None else mask[None, None].to(self.device),
                    use_cache=True,
                    **{CACHE: cache, LAYOUT: cache.layout},
                )
            hidden: Tensor = output.last_hidden_state
        return hidden

    def _output(self, logits: Tensor, hidden: Tensor) -> TargetOutput:
        """The last pass over as many rows as ``hidden`` [R, H] has; it may have read more."""
        layers = {layer: states[0, : len(hidden)].to(self.device) for layer, states in self._entered.items()}
        return TargetOutput(logits, hidden, layers)

    def _logits(self, hidden: Tensor) -> Tensor:
        """[..., V] after hidden states [..., H]."""
        with torch.inference_mode():
            logits: Tensor = self.head(hidden)
        return logits

    def _attention(self) -> Callable[..., Tensor]:
        """What attends in the modules that are replaced by fused ones."""
        return pick("tree_attention", self.backend, self.device)

    def _refuse_split(self, what: str) -> None:
        if self._split is not None:
            raise DeviceError(f"{what} need a target on one device, and this one is {SPLIT}")

    def _check_head(self, model: Any) -> None:
        """Refuse models that do more than ``lm_head(norm(x))``: drafting and verification rest on that."""
        ids = torch.arange(min(4, self.vocab_size), device=self.device)[None]
        with torch.inference_mode():
            ours = self.lm_head(self._decoder(input_ids=ids, use_cache=False).last_hidden_state)
            theirs = model(input_ids=ids, use_cache=False).logits
        worst = float((ours.float() - theirs.float()).abs().max())
        if not worst <= _SELF_CHECK_TOLERANCE * max(1.0, float(theirs.float().abs().max())):
            raise CheckpointError(
                f"{self.name}: its logits are not the LM head of its final hidden state (difference {worst:.3g}; "
                "soft-capped or scaled logits are not supported): choose another target"
            )
