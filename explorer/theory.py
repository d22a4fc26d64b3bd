"""Formulas beside which measured numbers can be put: what a pass must cost, what drafts should gain, what they hold.

Sources: Williams et al., "Roofline: an insightful visual performance model" (CACM 2009), for passes; Leviathan et al.,
"Fast inference from transformers via speculative decoding" (arXiv 2211.17192), for tokens and speedup. Standard library
only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelShape:
    """What decides how much a pass reads and computes.

    num_weights: parameters that every pass reads (an embedding table that is only looked up is not among them).
    num_bytes: of one weight and of one cached number.
    """

    num_weights: int
    num_bytes: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class Peaks:
    """What a device was measured to do at best: bytes it reads and floating-point operations, both a second."""

    bandwidth: float
    rate: float


@dataclass(frozen=True)
class PassWork:
    """What one pass moves and computes, at least."""

    num_bytes: float
    num_operations: float


def pass_work(shape: ModelShape, num_rows: int, prefix_len: int) -> PassWork:
    """A pass of ``num_rows`` behind ``prefix_len`` cached tokens.

    Weights and cache are read once; each row takes two operations a weight, and its attention. Activations are left
    out: they stay in the processor's own caches in passes this small.
    """
    num_keys = prefix_len + num_rows
    num_bytes = shape.num_weights * shape.num_bytes + kv_bytes(shape, num_keys)
    attention = 4 * num_rows * num_keys * shape.num_heads * shape.head_dim * shape.num_layers
    return PassWork(num_bytes, 2 * shape.num_weights * num_rows + attention)


def kv_bytes(shape: ModelShape, num_tokens: int) -> int:
    """Bytes of the keys and values of so many tokens; a tree needs them for all its rows until the commit."""
    return 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * shape.num_bytes * num_tokens


def floor_ms(work: PassWork, peaks: Peaks) -> float:
    """The least milliseconds a pass can take: the slower of reading and computing, the other hidden behind it."""
    return 1000 * max(work.num_bytes / peaks.bandwidth, work.num_operations / peaks.rate)


def free_rows(shape: ModelShape, prefix_len: int, peaks: Peaks, most: int = 1024) -> int:
    """The most rows whose pass still takes as long as one row's, by the roofline: where computing catches up."""
    rows = 1
    while rows < most:
        work = pass_work(shape, rows + 1, prefix_len)
        if work.num_operations / peaks.rate > work.num_bytes / peaks.bandwidth:
            break
        rows += 1
    return rows


def expected_tokens(alpha: float, depth: int) -> float:
    """Tokens that a step emits on average with a drafted chain of ``depth``, the target's own token included.

    (1 - alpha^(depth + 1)) / (1 - alpha): Leviathan et al., equation 1. alpha: the chance that a drafted token is
    accepted after an accepted one, the same at every depth and independent of all others. ValueError outside 0 to 1.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is a probability, not {alpha}")
    return float(depth + 1) if alpha == 1 else (1 - alpha ** (depth + 1)) / (1 - alpha)


def expected_speedup(tau: float, draft_ms: float, pass_ms: float) -> float:
    """Speed against plain decoding: tau / (1 + c_draft / c_target), c_draft being all drafting of a step.

    After Leviathan et al., theorem 3.8. pass_ms: a pass of the target over one row; a pass over all drafted rows is
    taken to cost no more, which holds only where reading the weights takes longest.
    """
    return tau / (1 + draft_ms / pass_ms)
