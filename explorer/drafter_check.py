"""Whether a drafter seems to belong to its target: how often its first guess is the target's own, over a short text.

A drafter that was made for another target, tokenizer or pairing of features loads without a complaint where the sizes
agree, and then drafts what is never accepted (issue 73 of SafeAILab/EAGLE): slow, though the output stays right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.target import Target

# Counting and code, which every language model continues with some certainty; about fifty tokens.
TEXT = (
    "One, two, three, four, five, six, seven, eight, nine, ten.\n\n"
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(i)\n"
)
MIN_TESTED = 8  # fewer tokens tell nothing
LEAST_SHARE = 0.05  # of the tested tokens; the weakest drafter that was tried agrees on more than a tenth


@dataclass(frozen=True)
class Reading:
    """The target's own reading of TEXT: token_ids [n], features [n, F], and wanted [n - 1], its choices after 1..n-1.

    features: the final hidden states, or side by side those that enter the layers which the drafter reads.
    """

    token_ids: Tensor
    features: Tensor
    wanted: Tensor


@dataclass(frozen=True)
class Agreement:
    """On how many of ``num_tested`` tokens drafter and target chose alike; ``chance``: how many if by luck alone."""

    num_equal: int
    num_tested: int
    chance: float

    @property
    def is_near_chance(self) -> bool:
        """Within three standard deviations of luck, or too rare to be of any use."""
        return self.num_equal < max(self.chance + 3 * self.chance**0.5, LEAST_SHARE * self.num_tested)


def read_text(target: Target, layers: Sequence[int] = ()) -> Reading:
    """One prompt pass over TEXT; what the target held before is gone. layers: whose inputs are wanted as features."""
    ids = target.tokenizer(TEXT)["input_ids"][: target.context_limit]
    target.start(len(ids), layers=layers)
    output = target.prefill(ids)
    with torch.inference_mode():
        wanted = target.head(output.hidden[1:]).argmax(dim=-1)
    target.start(0)
    features = torch.cat([output.layers[layer] for layer in layers], dim=-1) if layers else output.hidden
    return Reading(torch.tensor(ids, device=target.device), features, wanted)


def measure_agreement(drafter: Any, target: Target, reading: Reading) -> Agreement:
    """Compare the first guesses of ``drafter`` (a module with ``guess_next``) with the target's choices.

    Luck is what two choosers with these habits but no connection would share: the sum over tokens of the product of
    how often each chose it, as in Cohen's kappa. A drafter that always says the commonest token has no more.
    """
    with torch.inference_mode():
        guesses = drafter.guess_next(reading.token_ids, reading.features, target.head)
    wanted, guessed = Counter(reading.wanted.tolist()), Counter(guesses.tolist())
    num_tested = len(reading.wanted)
    chance = sum(count * guessed[token] for token, count in wanted.items()) / max(num_tested, 1)
    return Agreement(int((guesses == reading.wanted).sum()), num_tested, chance)


def find_doubt(drafter: Any, target: Target, reading: Reading) -> str | None:
    """A sentence that warns of a drafter which does not seem to belong to this target; None where all is well."""
    found = measure_agreement(drafter, target, reading)
    if found.num_tested < MIN_TESTED or not found.is_near_chance:
        return None
    return (
        f"this drafter does not seem to belong to this target: on a test text its first guess was the target's own "
        f"{found.num_equal} times in {found.num_tested}, and luck alone gives {found.chance:.1f}; expect few accepted "
        "tokens, though the output stays right"
    )
