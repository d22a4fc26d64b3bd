"""Lookahead decoding: Jacobi's trajectory in a window yields n-grams, which are verified when they fit.

arXiv 2402.02057, sections 3 and 4. Source of the details: `lade/decoding.py` of hao-ai-lab/LookaheadDecoding. A window
of n - 1 rows runs ahead of the text: each pass gives its newest row's next tokens, and the columns are n-grams that go
into a pool. The pool's n-grams after the root are this step's guesses. Window and guesses are one tree: guesses see
the root and themselves, a window token sees row 0 up to its column and the rows above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.config import setting
from explorer.methods.base import Draft, Method
from explorer.methods.guesses import merge_guesses, random_tokens
from explorer.sampling import Sampler, best_tokens
from explorer.tree import DRAFT, ROOT, WINDOW, DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:
    from explorer.target import Target, TargetOutput


@dataclass(frozen=True)
class LookaheadSettings:
    """The published values for a 7B target: W = 7, N = 5, G = 7."""

    window: int = setting(7, kind="int", min=1, max=64, step=1, help="columns of the window that runs ahead")
    ngram: int = setting(5, kind="int", min=3, max=16, step=1, help="tokens of an n-gram; the window has one row fewer")
    guesses: int = setting(7, kind="int", min=1, max=64, step=1, help="n-grams kept after each token, and tried")
    pool_from_prompt: bool = setting(False, kind="bool", help="put the n-grams of the text itself into the pool too")


class NgramPool:
    """n-grams by their first token, at most ``capacity`` of each; the one seen longest ago makes room."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._after: dict[int, dict[tuple[int, ...], None]] = {}
        self.size = 0

    def add(self, ngram: Sequence[int]) -> None:
        """Remember the n-gram as the newest of its first token."""
        known = self._after.setdefault(ngram[0], {})
        rest = tuple(ngram[1:])
        self.size += rest not in known
        known.pop(rest, None)
        known[rest] = None
        if len(known) > self._capacity:
            del known[next(iter(known))]
            self.size -= 1

    def after(self, token: int) -> list[list[int]]:
        """What may follow ``token``, oldest first."""
        return [list(rest) for rest in self._after.get(token, ())]


class Window:
    """The rows that run ahead of the text: ``rows`` grow to n - 1, then hold window - 1, window, ..., window tokens.

    Token j of row 0 stands j + 1 after the root, token j of row l >= 1 stands l + j after it; column 0 of row 0 is the
    root itself.
    """

    def __init__(self, num_rows: int, first_row: list[int]) -> None:
        self._num_rows = num_rows
        self.rows = [first_row]

    @property
    def is_full(self) -> bool:
        """All rows are there, so that columns are n-grams."""
        return len(self.rows) == self._num_rows

    @property
    def depth(self) -> int:
        """Of its deepest row below the root."""
        return max(row + len(tokens) - (row > 0) for row, tokens in enumerate(self.rows))

    def parents(self, first: int) -> list[int]:
        """The tree row of each token's parent, row by row, where the window begins at tree row ``first``."""
        found: list[int] = []
        above: list[int] = []
        for number, row in enumerate(self.rows):
            here = list(range(first + len(found), first + len(found) + len(row)))
            if number == 0:
                above = [0, *here]  # by column: row 0 goes on from token to token, row 1 hangs below the same ones
            found += above[: len(row)]
            above = above if number == 0 else here
        return found

    def ngrams(self, root: int, newest: list[int]) -> list[list[int]]:
        """A full window's columns: first token, the rows below it, and what the pass found after them."""
        firsts = [root, *self.rows[0]]
        return [list(column) for column in zip(firsts, *self.rows[1:], newest, strict=True)]

    def shift(self, newest: list[int]) -> None:
        """Move on by one token: ``newest`` is what the pass found after the last row's tokens."""
        if self.is_full:
            self.rows = [self.rows[1][1:], *self.rows[2:], newest]
        else:
            is_first = len(self.rows) == 1  # row 0 has no token in column 0, the root stands there
            self.rows = [*(row[1:] for row in self.rows), newest if is_first else newest[1:]]


class Lookahead(Method):
    """Drafts the pool's n-grams and, beside them, reads the window; only the former can be accepted."""

    name = "lookahead"
    label = "Lookahead"
    Settings = LookaheadSettings

    def __init__(self, target: Target, drafter: None, settings: LookaheadSettings) -> None:
        super().__init__(target, drafter, settings)
        self._root = 0
        self._text: list[int] = []
        self._pool = NgramPool(settings.guesses)
        self._window: Window | None = None  # None where none fits into the rest of the context
        self._added: list[list[int]] = []

    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """An empty pool and a window of random prompt tokens; nothing is left of an earlier run."""
        size = self.settings
        first_row = random_tokens(prompt_ids, size.window + size.ngram - 3, sampler.generator)
        self._window = Window(size.ngram - 1, first_row)
        self._pool, self._text, self._added = NgramPool(size.guesses), [], []
        self._read(prompt_ids)
        return None

    def draft(self, root: int) -> Draft:
        """The guesses after ``root`` as a trie, then the window, as long as the context has room for it."""
        self._root = root
        self._read([root])
        guesses = self._pool.after(root)
        tokens, parents = merge_guesses(root, guesses)
        roles = [ROOT] + [DRAFT] * (len(tokens) - 1)
        if self._window is not None and self._window.depth > self.target.max_depth:
            self._window = None  # its rows would be cut, and it could not move on
        rows = self._window.rows if self._window is not None else []
        if self._window is not None:
            parents += self._window.parents(len(tokens))
            tokens += [token for row in rows for token in row]
            roles += [WINDOW] * (len(tokens) - len(roles))
        extra = {
            "window_tokens": [list(row) for row in rows],
            "guess_tokens": guesses,
            "pool_size": self._pool.size,
            "added_tokens": self._added,  # n-grams the last pass put into the pool, their first tokens included
        }
        return Draft(DraftTree.from_lists(tokens, parents, roles=roles), extra=extra)

    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """Pool the window's columns and move it on by one, however many guesses were accepted."""
        self._added = []
        if self._window is not None:
            newest = best_tokens(output.logits[-len(self._window.rows[-1]) :])
            if self._window.is_full:
                self._added = self._window.ngrams(self._root, newest)
            for ngram in self._added:
                self._pool.add(ngram)
            self._window.shift(newest)
        self._read(verdict.accepted_tokens)

    def _read(self, tokens: Sequence[int]) -> None:
        """Text so far goes into the pool where that is asked for: every n-gram that ends with one of ``tokens``."""
        if not self.settings.pool_from_prompt:
            return
        for token in tokens:
            self._text.append(token)
            if len(self._text) >= self.settings.ngram:
                self._pool.add(self._text[-self.settings.ngram :])
