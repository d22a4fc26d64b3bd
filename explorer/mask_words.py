"""What a step's tree mask holds, what it weighs, and who may see a row, in words. Standard library only."""

from __future__ import annotations

from explorer.insight import RowSentences, depths, percent, plural
from explorer.trace import Step, Trace

WORD_BITS = 64  # of the words that the Triton kernel is handed, as in kernels.tree_attention.inputs


def mask_sentence(trace: Trace, step: Step) -> str:
    """Rows, set cells and bytes: as bits, and in the form that the run's backend is handed once a pass."""
    size = len(step.tree)
    if size == 1:
        return "1 row, which sees the whole prefix and itself: no mask is needed."
    cells = sum(depths(step.tree.parent)) + size
    text = f"{size} rows, {cells} of {size * size} cells set ({percent(cells / size**2)}), the prefix seen by all"
    form = f"as words of {WORD_BITS} bits" if trace.target.backend == "triton" else "a byte a key, prefix too"
    return f"{text}: {plural(-(-size * size // 8), 'byte')} as bits, {sent_bytes(trace, step):,} as sent ({form})."


def sent_bytes(trace: Trace, step: Step) -> int:
    """Bytes of the mask that the model was handed: [R, prefix + R] bool, or [R, W] words; 0 for a single row."""
    size = len(step.tree)
    if size == 1:
        return 0
    return size * 8 * -(-size // WORD_BITS) if trace.target.backend == "triton" else size * (step.prefix_len + size)


def visibility_sentences(step: Step) -> RowSentences:
    """Which rows may see each row: a column of the mask, told by how many rows hang below it."""
    size, parents = len(step.tree), step.tree.parent
    below = [0] * size
    for row in range(size - 1, 0, -1):
        below[parents[row]] += 1 + below[row]
    texts: dict[str, int] = {}
    index = [texts.setdefault(_seen_by(num, size), len(texts)) for num in below]
    return RowSentences(list(texts), index)


def _seen_by(num_below: int, size: int) -> str:
    if num_below == 0:
        return "Seen by itself alone: no row hangs below it"
    if num_below == size - 1:
        return f"Seen by all {size} rows"
    return f"Seen by itself and the {plural(num_below, 'row')} below it; the other {size - 1 - num_below} cannot see it"
