"""EAGLE-3: EAGLE-2's tree, drafted from what three layers of the target hold (arXiv 2503.01840, section 3).

True features are the hidden states that enter those layers, side by side; predicted ones are the drafter's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from explorer.config import setting
from explorer.methods.eagle2 import Eagle2, Eagle2Settings

if TYPE_CHECKING:
    from explorer.models.eagle3_layer import Eagle3Drafter
    from explorer.target import Target, TargetOutput


@dataclass(frozen=True)
class Eagle3Settings(Eagle2Settings):
    """The published defaults: EAGLE-2's, two levels deeper."""

    depth: int = setting(
        7,
        kind="int",
        min=0,
        max=32,
        step=1,
        allow_auto=True,
        help="expansions after the first level: the tree has depth + 1 levels below its root",
    )


class Eagle3(Eagle2):
    """Expand by cumulative confidence, rerank to ``total_tokens``; another drafter than EAGLE-2's."""

    name = "eagle3"
    label = "EAGLE-3"
    Settings = Eagle3Settings

    def __init__(self, target: Target, drafter: Eagle3Drafter, settings: Eagle3Settings) -> None:
        super().__init__(target, drafter, settings)
        self.feature_layers = drafter.config.feature_layers

    def _choose_head(self) -> Callable[[Tensor], Tensor]:
        """The drafter's own norm and LM head."""
        logits: Callable[[Tensor], Tensor] = self.drafter.logits
        return logits

    def _true_features(self, output: TargetOutput) -> Tensor:
        """The hidden states that entered the chosen layers, side by side: [R, F]."""
        return torch.cat([output.layers[layer] for layer in self.feature_layers], dim=-1)

    def _read(self, features: Tensor) -> Tensor:
        """True features [R, F] through the drafter's `fc`."""
        combined: Tensor = self.drafter.combine(features)
        return combined
