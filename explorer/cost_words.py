"""The sentences that tell what passes cost on this machine and what trees gain by it. Standard library only."""

from __future__ import annotations

from explorer.kernel_words import kernel_tables
from explorer.prediction import TOTAL_TOKENS, CostReport, DeviceCost, Prediction
from explorer.projections import projection_table
from explorer.tables import Table
from explorer.theory import free_rows, pass_work

MANY_ROWS = 60  # the published budget of EAGLE-2


def cost_sentence(cost: DeviceCost, num_rows: int = MANY_ROWS) -> str:
    """What a large tree costs here, in passes of one row."""
    one, many = cost.verify_at(1), cost.verify_at(num_rows)
    return f"{num_rows} rows cost {many / one:.1f} × one row here ({many:.0f} ms against {one:.0f} ms)"


def floor_sentence(cost: DeviceCost) -> str:
    """How near a pass of one row comes to what the device can do, and how many rows would be free; empty if unknown."""
    floor = cost.floor_at(1)
    if floor is None or cost.shape is None or cost.peaks is None:
        return ""
    one, work = cost.verify_at(1), pass_work(cost.shape, 1, cost.prefix_len)
    rows = free_rows(cost.shape, cost.prefix_len, cost.peaks)
    return (
        f"A pass of one row reads {work.num_bytes / 1e6:.0f} MB, at {cost.peaks.bandwidth / 1e9:.1f} GB/s at least "
        f"{floor:.0f} ms: it takes {one / floor:.1f} × that. By the roofline a pass could carry {rows} rows for the "
        f"price of one; from there on the {cost.peaks.rate / 1e9:.0f} billion operations a second are the limit"
    )


def cost_tables(report: CostReport) -> list[Table]:
    """Beside passes and trees: the operations with kernels of our own, and what other devices promise."""
    found = kernel_tables(report.kernels) if report.kernels else []
    shape = report.cost.shape
    return [*found, projection_table(shape, report.cost.prefix_len)] if shape else found


def prediction_sentence(item: Prediction) -> str:
    """A tree, what it needs to pay, and what is predicted of it."""
    others = [f"{name} {value}" for name, value in item.settings.items() if name != TOTAL_TOKENS]
    return (
        f"{', '.join([f'{item.num_rows} rows', *others])}: {item.tau:.2f} tokens per pass expected, "
        f"{item.break_even:.2f} needed to break even, so {item.speedup:.2f} × plain decoding"
    )


def verdict_sentence(label: str, fastest: Prediction | None) -> str:
    """Whether a method pays on this machine at all, with which tree."""
    if fastest is None:
        return f"{label}: no tree of it was profiled"
    pays = "pays" if fastest.speedup > 1 else "does not pay"
    return f"{label} {pays} here. Its best tree has {prediction_sentence(fastest)}"
