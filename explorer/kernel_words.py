"""What the two operations with kernels of our own cost on a device, as a record, tables and sentences.

Standard library only; explorer.kernel_cost measures it.
"""

from __future__ import annotations

from dataclasses import dataclass

from explorer.tables import Table

CLAIMED_US = 8  # host time that is claimed of commits in paged caches; a figure to measure against, not ours
ATTENTION_NOTE = (
    "One layer's attention for one tree, the same inputs for all; the largest difference is from the reference "
    "computed in float64. Through slots: keys and values are read by a table of slot numbers."
)
COMMIT_NOTE = (
    "Host time in Python, all layers, after a pass that is done. Making room is what the next pass has to do first; "
    "with slots it includes their table's way to the device."
)


@dataclass(frozen=True)
class AttentionTime:
    """One implementation. ms: median of a call; difference: largest, from the reference in float64."""

    name: str
    ms: float
    difference: float


@dataclass(frozen=True)
class CommitTime:
    """One kind of cache. Medians in microseconds; done_us: until the device has done it too."""

    cache: str
    commit_us: float
    done_us: float
    reserve_us: float


@dataclass(frozen=True)
class KernelCost:
    """Both operations on one device, in a target's shapes; ``missing`` says which implementation cannot run and why."""

    num_rows: int
    num_committed: int
    prefix_len: int
    attention: list[AttentionTime]
    commits: list[CommitTime]
    missing: str = ""


def kernel_tables(cost: KernelCost) -> list[Table]:
    """Both operations as tables."""
    note = f"{ATTENTION_NOTE} Not measured: {cost.missing}." if cost.missing else ATTENTION_NOTE
    attention = [[item.name, f"{item.ms:.3f}", f"{item.difference:.1e}"] for item in cost.attention]
    commits = [
        [item.cache, *(f"{value:.1f}" for value in (item.commit_us, item.done_us, item.reserve_us))]
        for item in cost.commits
    ]
    rows = f"{cost.num_rows} rows behind {cost.prefix_len} tokens"
    return [
        Table(f"Tree attention, {rows}", ["implementation", "ms", "largest difference"], attention, note),
        Table(
            f"Committing {cost.num_committed} of {cost.num_rows} rows",
            ["cache", "commit µs", "until the device is done µs", "making room µs"],
            commits,
            COMMIT_NOTE,
        ),
    ]


def commit_sentence(cost: KernelCost) -> str:
    """The cheapest commit on this host, beside what is claimed of such caches."""
    cheapest = min(cost.commits, key=lambda item: item.commit_us)
    whole = cheapest.commit_us + cheapest.reserve_us
    return (
        f"The cheapest commit here is that of {cheapest.cache}: {cheapest.commit_us:.1f} µs of host time, "
        f"{whole:.1f} µs with making room; elsewhere less than {CLAIMED_US} µs are claimed"
    )
