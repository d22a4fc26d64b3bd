"""A target whose verify passes have fixed shapes, so that a GPU launches each as one captured graph.

A pass of a small model, or of a few rows, costs a GPU less time than Python needs to launch its kernels. Here a tree
is padded to the next size of a few, its length and mask are numbers on the device, and the whole pass, LM head
included, is captured once a size and replayed. The prompt pass is left as it is: it happens once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.models.fixed_cache import FixedCache
from explorer.models.graphs import NUM_COMPARED, Capture, cuda_graph
from explorer.models.slot_cache import SlotCache
from explorer.target import Target, TargetOutput
from explorer.tree import DraftTree, binary_parents
from kernels.tree_attention.inputs import WORD_BITS, pack_mask

SIZES = (1, 4, 8, 16, 24, 32, 48, 64, 96, 128)  # rows of a pass; larger trees are rare and launched as ever
_ROOM_STEP = 1024  # the cache grows by whole steps, because whatever moves it costs every graph
# Of the largest logit; both run the same kernels over the same rows, but sums are split differently.
_TOLERANCE = {torch.float32: 1e-3}
_HALF_TOLERANCE = 5e-2


class GraphedTarget(Target):
    """A Target whose ``execution`` is "graphed", unless that does not work here: then ``why_eager`` says why.

    Every size of pass is compared with the ordinary one the first times it runs; where one fails or differs, all
    passes are ordinary ones from then on. capture: what makes a pass repeatable.
    """

    def __init__(self, model: object, *arguments: object, capture: Capture = cuda_graph) -> None:
        """Further arguments as of Target."""
        self.capture: Capture | None = capture
        self._passes: dict[tuple[int, tuple[int, ...]], _Pass] = {}
        self._is_perturbed = False
        super().__init__(model, *arguments)  # type: ignore[arg-type]
        self.start(1)

    @property
    def execution(self) -> str:
        """How verify passes run: "graphed", or "eager" where that failed."""
        return "eager" if self.why_eager else "graphed"

    def start(self, capacity: int, cache: str = "rows", layers: Sequence[int] = ()) -> None:
        """As of Target; a cache that is large enough stays where it is, and its graphs with it.

        What is missing is captured here, so that no step of a run has to wait for it.
        """
        if self._can_keep(capacity, cache):
            self.cache.truncate(0)
            self._watched, self._entered = tuple(layers), {}
        else:
            self._passes.clear()
            room = -(-(capacity + SIZES[-1]) // _ROOM_STEP) * _ROOM_STEP if capacity else 0
            super().start(room, cache, layers)
        if self.cache.capacity and not self._is_perturbed:
            self._capture_all()

    def forward(self, tree: DraftTree) -> TargetOutput:
        """As of Target; what it returns is the caller's own."""
        size = next((size for size in SIZES if size >= len(tree)), None)
        if size is None or self.why_eager or self._is_perturbed:
            return super().forward(tree)
        self.cache.reserve(size)  # the padding's rows, too, which no commit will name
        try:
            found = self._find(size, tree)
            output = found(tree, self.length)
        except RuntimeError as error:
            return self._give_up(f"capturing a pass of {size} rows failed: {str(error).splitlines()[0]}", tree)
        if found.num_compared < NUM_COMPARED:
            return self._compare(found, output, tree)
        self._mask = found.words[: len(tree)] if len(tree) > 1 else None
        return output

    def perturbed(self, size: float) -> AbstractContextManager[int]:
        """As of Target; its weights are other tensors meanwhile, of which no graph knows."""
        return self._without_graphs(super().perturbed(size))

    @contextmanager
    def _without_graphs(self, inner: AbstractContextManager[int]) -> Iterator[int]:
        self._is_perturbed = True
        try:
            with inner as num_layers:
                yield num_layers
        finally:
            self._is_perturbed = False

    def _can_keep(self, capacity: int, cache: str) -> bool:
        held = getattr(self, "cache", None)
        return held is not None and held.capacity >= capacity and isinstance(held, SlotCache) == (cache == "slots")

    def _find(self, size: int, tree: DraftTree) -> _Pass:
        """The pass of this size, captured if there is none yet."""
        if any(not found.fits(self.cache.storage) for found in self._passes.values()):
            self._passes.clear()  # they would hold on to the storage before
        key = (size, self._watched)
        if key not in self._passes:
            self._passes[key] = _Pass(self, size, tree)
        return self._passes[key]

    def _compare(self, found: _Pass, got: TargetOutput, tree: DraftTree) -> TargetOutput:
        """The ordinary pass counts until a captured one has shown that it gives the same."""
        expected = super().forward(tree)  # reserves again: the same places
        worst, largest = (float(rows.abs().max()) for rows in (got.logits - expected.logits, expected.logits))
        if not worst <= _TOLERANCE.get(self.dtype, _HALF_TOLERANCE) * max(1.0, largest):
            self.why_eager = f"a captured pass of {found.size} rows gives other logits (difference {worst:.3g})"
        found.num_compared += 1
        return expected

    def _give_up(self, reason: str, tree: DraftTree) -> TargetOutput:
        self.why_eager = reason
        self._passes.clear()
        return super().forward(tree)

    def _capture_all(self) -> None:
        """Capture each size at one length and use it at another, so that whatever was baked in shows."""
        missing = [size for size in SIZES if (size, self._watched) not in self._passes]
        for token in range(NUM_COMPARED if missing else 0):
            for size in missing:
                self.forward(DraftTree.from_lists([token % self.vocab_size] * size, binary_parents(size)))
            self.commit([0])
        self.cache.truncate(0)


class _Results(NamedTuple):
    """Where a captured pass leaves its results, [size, ...] each; layers as of TargetOutput."""

    logits: Tensor
    hidden: Tensor
    layers: dict[int, Tensor]


class _Pass:
    """One size of verify pass: its inputs as one block of numbers on the device, and the computation over them."""

    def __init__(self, target: GraphedTarget, size: int, tree: DraftTree) -> None:
        """tree: one that the target's cache expects next, so that a warm-up writes nothing over committed tokens."""
        num_words = -(-size // WORD_BITS)
        on_gpu = target.device.type == "cuda"
        self.size = size
        self.num_compared = 0
        self._sent = torch.zeros(1 + (2 + num_words) * size, dtype=torch.int64, pin_memory=on_gpu)
        self._received = self._sent.to(target.device)
        self._storage = target.cache.storage
        self.words = self._received[1 + 2 * size :].view(size, num_words)
        self._send(tree, target.length)
        cache = FixedCache(target.cache)

        @torch.inference_mode()
        def work() -> _Results:
            tokens, positions = self._received[1 : 1 + size], self._received[1 + size : 1 + 2 * size]
            return _Results(*target.run(tokens, positions, self.words, cache.at(self._received[:1], size)))

        assert target.capture is not None
        self._run = target.capture(work)

    def fits(self, storage: Tensor) -> bool:
        """Whether the cache still lies where it lay."""
        return self._storage is storage

    def __call__(self, tree: DraftTree, prefix_len: int) -> TargetOutput:
        """Copies of the tree's rows of the results: the next replay overwrites these."""
        self._send(tree, prefix_len)
        results, count = self._run(), len(tree)
        layers = {layer: states[:count].clone() for layer, states in results.layers.items()}
        return TargetOutput(results.logits[:count].clone(), results.hidden[:count].clone(), layers)

    def _send(self, tree: DraftTree, prefix_len: int) -> None:
        """The tree and its padding in one copy; rows of padding see themselves, and nobody sees them."""
        size, count = self.size, len(tree)
        mask = torch.eye(size, dtype=torch.bool)
        mask[:count, :count] = tree.tree_mask
        sent = self._sent
        sent[0] = prefix_len
        sent[1 : 1 + size] = 0
        sent[1 : 1 + count] = tree.tokens
        sent[1 + size : 1 + 2 * size] = prefix_len
        sent[1 + size : 1 + size + count] = tree.positions(prefix_len)
        sent[1 + 2 * size :] = pack_mask(mask).flatten()
        self._received.copy_(sent, non_blocking=True)
