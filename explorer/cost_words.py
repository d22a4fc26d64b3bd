"""The sentences that tell what passes cost on this machine and what trees gain by it. Standard library only."""

from __future__ import annotations

from explorer.prediction import TOTAL_TOKENS, DeviceCost, Prediction

MANY_ROWS = 60  # the published budget of EAGLE-2


def cost_sentence(cost: DeviceCost, num_rows: int = MANY_ROWS) -> str:
    """What a large tree costs here, in passes of one row."""
    one, many = cost.verify_at(1), cost.verify_at(num_rows)
    return f"{num_rows} rows cost {many / one:.1f} × one row here ({many:.0f} ms against {one:.0f} ms)"


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
