"""A target whose verify pass gives every row the very bits that a pass over this row alone gives it.

Fast passes round differently with the number of rows, so a near-tie may flip between plain decoding and a tree, often
in bfloat16. Three things make it exact: products whose rows do not depend on each other (oneDNN's packed float32 and,
on some processors, its bfloat16 ones from two rows on), never a pass over a single row (it is doubled), and attention
row by row. Whether the machine's products keep to that is tried when the target is made, on the target itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from explorer.errors import DeviceError
from explorer.models.attention import register_attention
from explorer.target import Target
from kernels.tree_attention.by_row import tree_attention

_PROBED_ROWS = (2, 3, 8, 17, 33, 64)  # two, odd, and around the tiles of matrix kernels
_PROBE_PREFIX = 5


class BitwiseTarget(Target):
    """A Target with ``numerics`` "bitwise". Raises DeviceError where this machine's products cannot keep it."""

    numerics = "bitwise"

    def __init__(self, model: object, *arguments: object) -> None:
        """Arguments as of Target; its backend must be "naive"."""
        model.set_attn_implementation(register_attention("by_row", tree_attention))  # type: ignore[attr-defined]
        super().__init__(model, *arguments)  # type: ignore[arg-type]
        self._check_rows()
        self.start(0)

    def _attention(self) -> Callable[..., Tensor]:
        return tree_attention

    def _pass(self, tokens: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        if len(tokens) > 1:
            return super()._pass(tokens, positions, mask)
        alone = self._make_mask(torch.eye(2, dtype=torch.bool), self.length)
        return super()._pass(tokens.expand(2), positions.expand(2), alone)[:1]

    def _logits(self, hidden: Tensor) -> Tensor:
        if len(hidden) > 1:
            return super()._logits(hidden)
        return super()._logits(hidden.expand(2, -1))[:1]

    def _check_rows(self) -> None:
        """Compare rows of trees of several sizes with the same rows alone, to the last bit."""
        self.start(_PROBE_PREFIX)
        ids = torch.arange(max(_PROBED_ROWS) + _PROBE_PREFIX) % self.vocab_size
        self.prefill(ids[:_PROBE_PREFIX].tolist())
        tokens = ids[_PROBE_PREFIX:]
        alone = {row: self._row(tokens[row : row + 1]) for row in (0, *(size - 1 for size in _PROBED_ROWS))}
        for size in _PROBED_ROWS:
            together = self._row(tokens[:size])
            for row in (0, size - 1):
                if not torch.equal(together[row], alone[row][0]):
                    raise DeviceError(
                        f"bitwise numerics are not to be had here: this machine's products give row {row} of {size} "
                        "other bits than the row alone; choose --numerics fast"
                    )

    def _row(self, tokens: Tensor) -> Tensor:
        """Logits [n, V] of n independent rows after the committed tokens, all at the same position."""
        independent = self._make_mask(torch.eye(len(tokens), dtype=torch.bool), self.length)
        hidden = self._pass(tokens, torch.full_like(tokens, self.length), independent)
        with torch.inference_mode():
            return self._logits(hidden)
