"""Whether a drafter seems to belong to its target: how often its first guess is the target's own, over a short text.

A drafter that was made for another target, tokenizer or pairing of features loads without a complaint where the sizes
agree, and then drafts what is never accepted (issue 73 of SafeAILab/EAGLE): slow, though the output stays right. One
made for a target that knows a single kind of text is lost on others: it is asked again over the target's own answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.errors import PromptError
from explorer.target import Target
from explorer.text import render_prompt

# Counting and code, which every language model continues with some certainty; about fifty tokens.
TEXT = (
    "One, two, three, four, five, six, seven, eight, nine, ten.\n\n"
    "def add(a, b):\n    return a + b\n\nfor i in range(10):\n    print(i)\n"
)
QUESTION = "Tell me about yourself."
ANSWER_TOKENS = 64
MIN_TESTED = 8  # fewer tokens tell nothing
LEAST_SHARE = 0.05  # of the tested tokens; the weakest drafter that was tried agrees on more than a tenth


@dataclass(frozen=True)
class Reading:
    """The target's own reading of a text: token_ids [n], features [n, F], wanted [n - 1], its choices after 1..n-1.

    features: the final hidden states, or side by side those that enter the layers which the drafter reads. start: how
    many of the choices are not compared, because they stand inside of a question.
    """

    token_ids: Tensor
    features: Tensor
    wanted: Tensor
    start: int = 0


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
    return _read(target, target.tokenizer(TEXT)["input_ids"][: target.context_limit], layers)


def read_answer(target: Target, layers: Sequence[int] = ()) -> Reading:
    """As ``read_text``, over the target's greedy answer to QUESTION: the kind of text that it writes itself."""
    try:
        prompt = render_prompt(target.tokenizer, QUESTION)
    except PromptError:  # the template is for other messages, and runs may do without it
        prompt = render_prompt(target.tokenizer, QUESTION, use_chat_template=False)
    ids = prompt.token_ids[: target.context_limit - 1]
    num_asked = len(ids)
    target.start(num_asked + ANSWER_TOKENS)
    token = int(target.prefill(ids).logits.argmax())
    while token not in target.stop_ids and len(ids) < min(num_asked + ANSWER_TOKENS, target.context_limit):
        ids = [*ids, token]
        token = int(target.prefill([token]).logits.argmax())
    return _read(target, ids, layers, max(0, num_asked - 2))


def _read(target: Target, ids: Sequence[int], layers: Sequence[int], start: int = 0) -> Reading:
    target.start(len(ids), layers=layers)
    output = target.prefill(ids)
    with torch.inference_mode():
        wanted = target.head(output.hidden[1:]).argmax(dim=-1)
    target.start(0)
    features = torch.cat([output.layers[layer] for layer in layers], dim=-1) if layers else output.hidden
    return Reading(torch.tensor(ids, device=target.device), features, wanted, start)


def measure_agreement(drafter: Any, target: Target, reading: Reading) -> Agreement:
    """Compare the first guesses of ``drafter`` (a module with ``guess_next``) with the target's choices.

    Luck is what two choosers with these habits but no connection would share: the sum over tokens of the product of
    how often each chose it, as in Cohen's kappa. A drafter that always says the commonest token has no more.
    """
    with torch.inference_mode():
        guesses = drafter.guess_next(reading.token_ids, reading.features, target.head)[reading.start :]
    choices = reading.wanted[reading.start :]
    wanted, guessed = Counter(choices.tolist()), Counter(guesses.tolist())
    num_tested = len(choices)
    chance = sum(count * guessed[token] for token, count in wanted.items()) / max(num_tested, 1)
    return Agreement(int((guesses == choices).sum()), num_tested, chance)


def find_doubt(drafter: Any, target: Target, text: Reading, answer: Callable[[], Reading]) -> str | None:
    """A sentence that warns of a drafter which does not seem to belong to this target; None where all is well.

    answer: gives the target's reading of its own answer, which is asked for only where ``text`` raises the doubt.
    """
    found = measure_agreement(drafter, target, text)
    if found.num_tested < MIN_TESTED or not found.is_near_chance:
        return None
    own = measure_agreement(drafter, target, answer())
    if own.num_tested >= MIN_TESTED and not own.is_near_chance:
        return None
    return (
        f"this drafter does not seem to belong to this target: on a test text its first guess was the target's own "
        f"{found.num_equal} times in {found.num_tested}, and luck alone gives {found.chance:.1f}; expect few accepted "
        "tokens, though the output stays right"
    )
