"""Static trees of candidate ranks, laid out in rows. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class StaticTree:
    """A tree of rank paths laid out in rows: row i + 1 is ``choices[i]``, sorted by (length, value).

    parents: [N], -1 for the root. depths and ranks: [N - 1] of the rows below the root; the row at depth d takes the
    candidate ``rank`` of head d - 1, which all parents at a depth share.
    """

    choices: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    ranks: tuple[int, ...]

    @classmethod
    def build(cls, paths: Sequence[Sequence[int]], num_heads: int, max_rows: int) -> StaticTree:
        """Keep the first paths (a preset lists them best first) that ``num_heads`` heads reach and the budget holds.

        A path whose parent was not kept is left out, so no row is orphaned.
        """
        kept: set[tuple[int, ...]] = {()}
        for path in map(tuple, paths):
            if len(path) <= num_heads and len(kept) < max_rows and path[:-1] in kept:
                kept.add(path)
        choices = sorted(kept - {()}, key=lambda path: (len(path), path))
        row = {path: i for i, path in enumerate([(), *choices])}
        return cls(
            choices=tuple(choices),
            parents=(-1, *(row[path[:-1]] for path in choices)),
            depths=tuple(len(path) for path in choices),
            ranks=tuple(path[-1] for path in choices),
        )
