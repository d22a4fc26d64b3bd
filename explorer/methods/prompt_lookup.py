"""Prompt lookup: what followed the last few tokens when they occurred before is drafted again. No drafter at all.

Source: apoorvumang/prompt-lookup-decoding (`find_candidate_pred_tokens`, n-grams of 3, 10 tokens) and transformers'
PromptLookupCandidateGenerator: the longest n-gram first, of its occurrences the earliest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.config import setting
from explorer.methods.base import Draft, Method
from explorer.sampling import Sampler
from explorer.tree import DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.target import Target, TargetOutput


@dataclass(frozen=True)
class PromptLookupSettings:
    """The published defaults."""

    ngram: int = setting(3, kind="int", min=1, max=16, step=1, help="longest run of last tokens that is looked for")
    gamma: int = setting(10, kind="int", min=1, max=128, step=1, help="tokens drafted from where it was found")


class PromptLookup(Method):
    """Drafts a chain copied from the text so far, prompt and output alike."""

    name = "prompt_lookup"
    label = "Prompt lookup"
    Settings = PromptLookupSettings

    def __init__(self, target: Target, drafter: None, settings: PromptLookupSettings) -> None:
        super().__init__(target, drafter, settings)
        self._text: list[int] = []
        self._first: dict[tuple[int, ...], int] = {}  # n-gram -> where its earliest occurrence ends

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Index the prompt."""
        self._text, self._first = [], {}
        for token in prompt_ids:
            self._append(token)
        return None

    def draft(self, root: int) -> Draft:
        """What followed the longest known n-gram; ``extra`` tells its length and where it ends in the text."""
        self._append(root)
        size, end = self._find()
        guesses = self._text[end : end + self.settings.gamma]
        chain = DraftTree.from_lists([root, *guesses], range(-1, len(guesses)))
        return Draft(chain, extra={"matched": size, "position": end} if size else None)

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """The accepted tokens become text to look in."""
        for token in verdict.accepted_tokens:
            self._append(token)

    def _append(self, token: int) -> None:
        """Add a token and remember where the n-grams it completes were seen first."""
        self._text.append(token)
        end = len(self._text)
        for size in range(1, min(self.settings.ngram, end) + 1):
            self._first.setdefault(tuple(self._text[-size:]), end)

    def _find(self) -> tuple[int, int]:
        """(length of the longest last n-gram that occurred before, where that ended); (0, end of text) for none."""
        now = len(self._text)
        for size in range(min(self.settings.ngram, now - 1), 0, -1):
            end = self._first[tuple(self._text[-size:])]
            if end < now:
                return size, end
        return 0, now
