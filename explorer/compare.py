"""Two runs at the same place in the same text: what each had drafted there, and what became of it.

Two steps are compared by the token paths below the same output token. Where the other run was inside an accepted path
there, what it had drafted below that row is compared: the record has no draft that was never made. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.errors import TraceError
from explorer.insight import listing, plural, quote
from explorer.side_by_side import check_comparable, run_labels
from explorer.timeline import place_of, root_index
from explorer.trace import Step, Trace


@dataclass(frozen=True)
class Side:
    """One run's part of a comparison.

    step, base: its step and the row of it that is the shared output token (0: the step's root). rows: the drafted rows
    below base. matches: for each of them the other side's row with the same token path, None where only this side
    drafted it. pruned_there: the rows among them that the other side considered and pruned. num_accepted: of rows.
    num_right: how many tokens of the text that really followed lie on one of its paths.
    """

    label: str
    step: int
    base: int
    rows: list[int]
    matches: list[int | None]
    pruned_there: list[int]
    num_accepted: int
    num_right: int


@dataclass(frozen=True)
class Comparison:
    """Two sides after output token ``index``. num_both: token paths that both drafted, a path being one node's.

    question: what is compared, as a heading.
    """

    question: str
    index: int
    sides: tuple[Side, Side]
    num_both: int
    sentences: list[str]


def shared_steps(first: Trace, second: Trace) -> list[tuple[int, int]]:
    """(step, step) of all pairs that begin at the same place of the same text: there both drafted from the root."""
    check_comparable([first, second])
    common = _num_common(first, second)
    begins = {root_index(second, step): step.index for step in second.steps}
    roots = [(root_index(first, step), step.index) for step in first.steps]
    return [(step, begins[root]) for root, step in roots if root < common and root in begins]


def compare_at(first: Trace, step: int, second: Trace) -> Comparison:
    """Compare step ``step`` of the first run with what the second had drafted at the same place.

    Raises TraceError, in words, where the runs cannot be compared, the texts have parted before, or the second run has
    no draft there.
    """
    check_comparable([first, second])
    if not 0 <= step < len(first.steps):
        raise TraceError(f"there is no step {step} in the first run: it has {len(first.steps)}")
    labels = run_labels([first, second])
    index = root_index(first, first.steps[step])
    if index >= (common := _num_common(first, second)):
        raise TraceError(
            f"the texts of {labels[0]} and {labels[1]} part at token {common + 1}, before this step: choose an earlier "
            "one"
        )
    place = place_of(second, index)
    if place is None:
        raise TraceError(f"{labels[1]} ended here: it drafted nothing after token {index + 1}")
    other = second.steps[place.step]
    base = other.path[place.position]
    paths = _Paths()
    here, there = paths.drafted(first.steps[step], 0), paths.drafted(other, base)
    pruned_here, pruned_there = paths.ghosts(first.steps[step], 0, here), paths.ghosts(other, base, there)
    text = first.output.token_ids[index + 1 :]
    sides = (
        _side(labels[0], (first.steps[step], 0, here), (there, pruned_there), paths.held(text, here)),
        _side(labels[1], (other, base, there), (here, pruned_here), paths.held(text, there)),
    )
    num_both = len(here.keys() & there.keys())
    token = quote(first.vocab, first.output.token_ids[index])
    question = f"What would {labels[1]} have drafted after {token}?"
    return Comparison(question, index, sides, num_both, _sentences(sides, num_both, token, text))


def _num_common(first: Trace, second: Trace) -> int:
    pairs = zip(first.output.token_ids, second.output.token_ids, strict=False)
    parted = (i for i, (one, other) in enumerate(pairs) if one != other)
    return next(parted, min(len(first.output.token_ids), len(second.output.token_ids)))


class _Paths:
    """Token paths as numbers, so that two trees can be compared however deep they are; 0 is the empty path."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}

    def _number(self, above: int, token: int) -> int:
        return self._numbers.setdefault((above, token), len(self._numbers) + 1)

    def drafted(self, step: Step, base: int) -> dict[int, int]:
        """Path below ``base`` -> row, of drafted rows; of equal siblings the first."""
        tree, paths = step.tree, {base: 0}
        found: dict[int, int] = {}
        for row in range(base + 1, len(tree)):
            above = paths.get(tree.parent[row])
            if above is not None and tree.role[row] == "draft":
                paths[row] = self._number(above, tree.token[row])
                found.setdefault(paths[row], row)
        return found

    def ghosts(self, step: Step, base: int, drafted: dict[int, int]) -> set[int]:
        """Paths below ``base`` that were pruned."""
        paths = {row: path for path, row in drafted.items()} | {base: 0}
        num_rows, found = len(step.tree), set[int]()
        for i, (parent, token) in enumerate(zip(step.ghosts.parent, step.ghosts.token, strict=True)):
            if parent in paths:
                paths[num_rows + i] = self._number(paths[parent], token)
                found.add(paths[num_rows + i])
        return found

    def held(self, text: Sequence[int], drafted: dict[int, int]) -> int:
        """How many tokens of ``text`` lie on one path of a tree."""
        at = 0
        for count, token in enumerate(text):
            at = self._numbers.get((at, token), -1)
            if at not in drafted:
                return count
        return len(text)


def _side(
    label: str, own: tuple[Step, int, dict[int, int]], other: tuple[dict[int, int], set[int]], num_right: int
) -> Side:
    step, base, paths = own
    drafted_there, pruned_there = other
    return Side(
        label,
        step.index,
        base,
        rows=list(paths.values()),
        matches=[drafted_there.get(path) for path in paths],
        pruned_there=[row for path, row in paths.items() if path in pruned_there],
        num_accepted=sum(step.tree.state[row] == "accepted" for row in paths.values()),
        num_right=num_right,
    )


def _sentences(sides: tuple[Side, Side], num_both: int, token: str, text: list[int]) -> list[str]:
    alone = [f"{side.label} alone {len(side.rows) - num_both}" for side in sides]
    found = [f"After {token} both drafted {plural(num_both, 'node')} alike, {' and '.join(alone)}."]
    if text:
        right = [
            f"{side.label} had drafted {f'the first {side.num_right}' if side.num_right else 'none'}" for side in sides
        ]
        found.append(f"Of the tokens that followed, {listing(right)}.")
    for side, other in (sides, sides[::-1]):
        if side.base:
            found.append(
                f"{side.label} was inside its step {side.step + 1} here: compared is what it had drafted below this "
                "token."
            )
        if side.pruned_there:
            count = len(side.pruned_there)
            found.append(
                f"{other.label} had thought of {count} of the nodes that only {side.label} sent, and pruned "
                f"{'it' if count == 1 else 'them'}."
            )
    return found
