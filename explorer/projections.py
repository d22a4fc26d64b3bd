"""What the roofline promises of a target on GPUs that are not here: projections from published peaks, not measurements.

Peaks are those that NVIDIA publishes (bandwidth of the memory; dense bfloat16 with float32 sums, without sparsity).
Standard library only.
"""

from __future__ import annotations

from dataclasses import replace

from explorer.tables import Table
from explorer.theory import ModelShape, Peaks, floor_ms, free_rows, pass_work

PUBLISHED = {
    "H200 SXM": Peaks(4.8e12, 989e12),
    "H100 SXM": Peaks(3.35e12, 989e12),
    "A100 80 GB SXM": Peaks(2.039e12, 312e12),
    "RTX 4090": Peaks(1.008e12, 165e12),
    "L4": Peaks(0.3e12, 121e12),
}
BFLOAT16_BYTES = 2
MANY_ROWS = 60
NOTE = (
    "Projected, not measured: the target's shape in bfloat16 against the peaks of the data sheets. No program reaches "
    "them, and launching kernels is not counted, which on a target this small may take longer than the pass itself."
)


def projection_table(shape: ModelShape, prefix_len: int) -> Table:
    """The least time of a pass over one row and over many, and the rows that would be free, by GPU."""
    here = replace(shape, num_bytes=BFLOAT16_BYTES)
    rows = []
    for name, peaks in PUBLISHED.items():
        one, many = (floor_ms(pass_work(here, count, prefix_len), peaks) for count in (1, MANY_ROWS))
        free = free_rows(here, prefix_len, peaks)
        rows.append([name, f"{one:.3f}", f"{many:.3f}", f"{many / one:.2f}", str(free)])
    head = ["GPU", "one row, least ms", f"{MANY_ROWS} rows, least ms", "× one row", "rows for the price of one"]
    return Table("Projected to other devices", head, rows, NOTE)
