"""Random draft trees for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from explorer.tree import DraftTree


@st.composite
def trees(draw: st.DrawFn, max_rows: int = 24, probs: st.SearchStrategy[float] | None = None) -> DraftTree:
    """Every row below the root has a parent above it; ``probs`` gives the draft probabilities, anything above 0."""
    num_rows = draw(st.integers(1, max_rows))
    parents = [-1] + [draw(st.integers(0, row - 1)) for row in range(1, num_rows)]
    any_prob = st.floats(1e-6, 1.0) if probs is None else probs
    chosen = [float("nan")] + [draw(any_prob) for _ in range(num_rows - 1)]
    return DraftTree.from_lists(list(range(num_rows)), parents, draft_probs=chosen)
