"""The one structure every method drafts: rows of a verify pass, each with a parent.

Row 0 is the root: the last emitted token, not yet in the KV cache. From ``parents`` alone follow the tree mask
(ancestors or self), the positions (prefix length + depth) and the candidate paths, so no method has mask code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

ROOT, DRAFT, WINDOW = 0, 1, 2
ROLE_NAMES = ("root", "draft", "window")


@dataclass(frozen=True, eq=False)
class DraftTree:
    """N rows in engine order, parents before children.

    tokens: [N] int64. parents: [N] int64, ``parents[0] == -1`` and ``parents[i] < i``. roles: [N] int8, one of ROOT,
    DRAFT, WINDOW. draft_probs: [N] float32, the drafter's probability given the parent, nan where there is none.
    """

    tokens: Tensor
    parents: Tensor
    roles: Tensor
    draft_probs: Tensor

    def __post_init__(self) -> None:
        num_rows = self.tokens.numel()
        if num_rows == 0 or any(t.shape != (num_rows,) for t in (self.tokens, self.parents, self.roles)):
            raise ValueError("a draft tree needs at least its root, and columns of one length")
        parents = self.parent_list
        if parents[0] != -1 or any(not 0 <= parents[i] < i for i in range(1, num_rows)):
            raise ValueError("every row but the root needs a parent above it")

    @classmethod
    def root_only(cls, token: int) -> DraftTree:
        """The tree of a plain step: nothing drafted."""
        return cls.from_lists([token], [-1])

    @classmethod
    def from_lists(
        cls,
        tokens: Sequence[int],
        parents: Sequence[int],
        draft_probs: Sequence[float] | None = None,
        roles: Sequence[int] | None = None,
    ) -> DraftTree:
        """Build from Python lists; rows below the root are drafts unless ``roles`` says otherwise."""
        num_rows = len(tokens)
        return cls(
            tokens=torch.tensor(tokens, dtype=torch.int64),
            parents=torch.tensor(parents, dtype=torch.int64),
            roles=torch.tensor(roles or [ROOT] + [DRAFT] * (num_rows - 1), dtype=torch.int8),
            draft_probs=torch.tensor(draft_probs or [float("nan")] * num_rows, dtype=torch.float32),
        )

    def __len__(self) -> int:
        return self.tokens.numel()

    @cached_property
    def parent_list(self) -> list[int]:
        """``parents`` as Python integers."""
        return self.parents.tolist()

    @cached_property
    def token_list(self) -> list[int]:
        """``tokens`` as Python integers."""
        return self.tokens.tolist()

    @cached_property
    def depths(self) -> Tensor:
        """[N] int64, 0 for the root."""
        depths = [0] * len(self)
        for row, parent in enumerate(self.parent_list):
            if row:
                depths[row] = depths[parent] + 1
        return torch.tensor(depths, dtype=torch.int64)

    @cached_property
    def tree_mask(self) -> Tensor:
        """[N, N] bool: row i may attend to row j, that is, j is i or an ancestor of i."""
        mask = torch.eye(len(self), dtype=torch.bool)
        for row, parent in enumerate(self.parent_list):
            if row:
                mask[row] |= mask[parent]
        return mask

    @cached_property
    def scores(self) -> Tensor:
        """[N] float32: sum of log ``draft_probs`` from the root (0 there); rows without a probability add nothing."""
        logs = self.draft_probs.double().log().nan_to_num(nan=0.0, neginf=-1e9).tolist()
        scores = [0.0] * len(self)
        for row, parent in enumerate(self.parent_list):
            if row:
                scores[row] = scores[parent] + logs[row]
        return torch.tensor(scores, dtype=torch.float32)

    @cached_property
    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in range(len(self))]
        for row, parent in enumerate(self.parent_list):
            if row:
                children[parent].append(row)
        return children

    def children(self, row: int) -> list[int]:
        """Rows whose parent is ``row``, in row order."""
        return self._children[row]

    def positions(self, prefix_len: int) -> Tensor:
        """[N] int64 position ids: prefix length + depth."""
        return self.depths + prefix_len

    def paths(self) -> list[list[int]]:
        """Root-to-leaf rows, one list a leaf, in leaf order."""
        return [self.path_to(row) for row in range(len(self)) if not self._children[row]]

    def path_to(self, row: int) -> list[int]:
        """Rows from the root to ``row``, both included."""
        path = [row]
        while path[-1]:
            path.append(self.parent_list[path[-1]])
        return path[::-1]

    def keep(self, rows: Tensor | Sequence[int]) -> DraftTree:
        """The tree of these rows, ascending; a row whose parent is not kept is a ValueError, never an orphan."""
        kept = sorted({int(row) for row in rows} | {0})
        new_row = {row: i for i, row in enumerate(kept)}
        new_row[-1] = -1
        orphans = [row for row in kept if self.parent_list[row] not in new_row]
        if orphans:
            raise ValueError(f"rows {orphans} would lose their parents")
        index = torch.tensor(kept, dtype=torch.int64)
        parents = torch.tensor([new_row[self.parent_list[row]] for row in kept], dtype=torch.int64)
        return DraftTree(self.tokens[index], parents, self.roles[index], self.draft_probs[index])


def binary_parents(num_rows: int) -> list[int]:
    """Parents of a tree in which every row has two children, as far as they go: a shape to measure with."""
    return [-1, *((row - 1) // 2 for row in range(1, num_rows))]
