"""How the target's own tokens are chosen: the one place that turns logits into a token."""

from __future__ import annotations

from torch import Tensor

from explorer.config import Sampling


class Sampler:
    """Chooses tokens by one Sampling for one run."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def choose(self, logits: Tensor) -> int:
        """The next token from one row of logits [V]: the argmax, as long as sampling is greedy."""
        return int(logits.argmax())
