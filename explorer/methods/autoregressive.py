"""Plain decoding: nothing is drafted, one token a pass. The lane every speedup is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.methods.base import Draft, Method
from explorer.sampling import Sampler
from explorer.tree import DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.target import TargetOutput


class Autoregressive(Method):
    """Every step is the root alone."""

    name = "autoregressive"
    label = "Autoregressive"

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Nothing to prepare."""
        return None

    def draft(self, root: int) -> Draft:
        """The root alone."""
        return Draft(DraftTree.root_only(root))

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """Nothing to learn."""
