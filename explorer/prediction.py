"""How fast a tree of drafts will be here: costs of this device, acceptance of the drafter. Standard library only.

A step of n rows costs what its drafts and a verify pass of n rows cost, and emits tau(n) tokens; plain decoding emits
one token for a pass of one row. So speculation pays where tau(n) exceeds the step's cost in passes of one row: the
break-even. (EAGLE-2, arXiv 2406.16858, fixes 60 rows for large GPUs; Sequoia, arXiv 2402.12374, chooses by hardware.)
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.codec import decode, encode
from explorer.errors import CheckpointError, ExplorerError
from explorer.kernel_words import KernelCost
from explorer.theory import ModelShape, Peaks, floor_ms, pass_work

PROFILE_FILE = "acceptance.json"
TOTAL_TOKENS = "total_tokens"


@dataclass(frozen=True)
class Shape:
    """tau of one shape of tree over its row budgets.

    settings: the method's settings but ``total_tokens``. tau: tau[n - 1] is the mean acceptance length with n rows.
    """

    settings: dict[str, Any]
    tau: list[float]


@dataclass(frozen=True)
class Profile:
    """What a drafter's trees are worth, measured once over text; it holds on every device."""

    method: str
    text: str
    num_tokens: int
    shapes: list[Shape]


@dataclass(frozen=True)
class DeviceCost:
    """Median milliseconds of a verify pass with its verdict and commit, by rows, behind ``prefix_len`` tokens.

    shape, peaks: of the target and of the device, for the floor under these times.
    """

    device_name: str
    dtype: str
    num_threads: int
    prefix_len: int
    verify_ms: dict[int, float]
    shape: ModelShape | None = None
    peaks: Peaks | None = None

    def floor_at(self, num_rows: int) -> float | None:
        """The least milliseconds that such a pass can take on this device; None where its peaks are not known."""
        if self.shape is None or self.peaks is None:
            return None
        return floor_ms(pass_work(self.shape, num_rows, self.prefix_len), self.peaks)

    def verify_at(self, num_rows: int) -> float:
        """Milliseconds of a pass over ``num_rows``: between two measured sizes on the line through them."""
        sizes = sorted(self.verify_ms)
        if num_rows <= sizes[0] or len(sizes) == 1:
            return self.verify_ms[sizes[0]]
        upper = min(bisect_left(sizes, num_rows), len(sizes) - 1)
        low, high = sizes[upper - 1], sizes[upper]
        share = (num_rows - low) / (high - low)
        return self.verify_ms[low] + share * (self.verify_ms[high] - self.verify_ms[low])


@dataclass(frozen=True)
class DraftCost:
    """Median milliseconds of drafting, by shape: ``draft_ms[i]`` belongs to the profile's shape i."""

    method: str
    draft_ms: list[float]


@dataclass(frozen=True)
class Prediction:
    """One tree: its settings, the tokens a step emits, what the step costs, and what follows."""

    settings: dict[str, Any]
    tau: float
    step_ms: float
    break_even: float
    tokens_per_second: float
    speedup: float

    @property
    def num_rows(self) -> int:
        """Rows of its verify pass."""
        rows: int = self.settings[TOTAL_TOKENS]
        return rows


@dataclass(frozen=True)
class CostReport:
    """A target's costs on this device; ``methods``: label -> the fastest tree of each row budget, in order.

    kernels: what the operations with kernels of ours cost.
    """

    target: str
    cost: DeviceCost
    methods: dict[str, list[Prediction]]
    kernels: KernelCost | None = None


def predict(cost: DeviceCost, draft: DraftCost, profile: Profile) -> list[Prediction]:
    """Every tree that the profile knows, in its order; a budget that adds nothing to a smaller one is left out."""
    plain_ms = cost.verify_at(1)
    found = []
    for shape, draft_ms in zip(profile.shapes, draft.draft_ms, strict=True):
        for num_rows, tau in enumerate(shape.tau, start=1):
            if num_rows < 2 or tau <= shape.tau[num_rows - 2]:
                continue
            step_ms = draft_ms + cost.verify_at(num_rows)
            speed, break_even = 1000 * tau / step_ms, step_ms / plain_ms
            settings = shape.settings | {TOTAL_TOKENS: num_rows}
            found.append(Prediction(settings, tau, step_ms, break_even, speed, tau / break_even))
    return found


def best(predictions: list[Prediction], fixed: Mapping[str, Any] | None = None) -> Prediction | None:
    """The fastest tree among those with the ``fixed`` settings; None where no such tree was profiled."""
    wanted = (fixed or {}).items()
    fitting = [item for item in predictions if all(item.settings.get(name) == value for name, value in wanted)]
    return max(fitting, key=lambda item: item.tokens_per_second, default=None)


def best_by_rows(predictions: list[Prediction]) -> list[Prediction]:
    """The fastest tree of each row budget, fewest rows first: the curve that is drawn."""
    fastest: dict[int, Prediction] = {}
    for item in predictions:
        known = fastest.get(item.num_rows)
        if known is None or item.tokens_per_second > known.tokens_per_second:
            fastest[item.num_rows] = item
    return [fastest[rows] for rows in sorted(fastest)]


def read_profile(folder: Path) -> Profile | None:
    """The profile beside a drafter's weights, None where there is none; CheckpointError where it cannot be read."""
    path = folder / PROFILE_FILE
    if not path.is_file():
        return None
    try:
        return decode(Profile, json.loads(path.read_text(encoding="utf-8")), PROFILE_FILE)
    except (OSError, ValueError, RecursionError, ExplorerError) as error:
        raise CheckpointError(f"{path} is no acceptance profile: {error}") from error


def profile_text(profile: Profile) -> str:
    """The profile as the file's text: a line a shape."""
    raw = encode(profile)
    shapes = ",\n".join("  " + json.dumps(shape) for shape in raw.pop("shapes"))
    head = json.dumps(raw, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{head},\n "shapes": [\n{shapes}\n ]\n}}\n'
