"""Output tokens in groups: how many of them drafts held, and in which ways the others were missed.

Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from explorer.misses import ENDINGS, LABELS
from explorer.spots import ACCEPTED, RESTED, Spot
from explorer.token_classes import TOKEN_CLASSES

POSITIONS = (0, 16, 32, 64, 128, 256, 512, 1024)  # of the output; each group ends where the next begins
BITS = (0.0, 0.25, 0.5, 1.0, 2.0, 3.0)


@dataclass(frozen=True)
class Tally:
    """A group of tokens. acceptance: accepted / (accepted + missed), None where nothing was tested.

    num_tokens counts those too that no draft reached. endings: way of missing -> tokens.
    """

    name: str
    num_tokens: int
    num_accepted: int
    num_missed: int
    acceptance: float | None
    endings: dict[str, int]


def by_class(found: Sequence[Spot]) -> list[Tally]:
    """A tally for each of TOKEN_CLASSES that occurs."""
    return _tallies(found, lambda spot: spot.token_class, TOKEN_CLASSES)


def by_position(found: Sequence[Spot]) -> list[Tally]:
    """A tally for each stretch of the output, near its beginning the shorter ones."""
    names = [f"{low} to {high - 1}" for low, high in pairwise(POSITIONS)]
    names.append(f"from {POSITIONS[-1]}")
    return _tallies(found, lambda spot: names[_bin(POSITIONS, spot.index)], names)


def by_entropy(found: Sequence[Spot]) -> list[Tally]:
    """A tally for each range of bits that the target's choice had at least; tokens without a record are left out."""
    names = [f"{low:g} to {high:g} bits" for low, high in pairwise(BITS)]
    names.append(f"{BITS[-1]:g} bits or more")
    known = [spot for spot in found if spot.entropy is not None]
    return _tallies(known, lambda spot: names[_bin(BITS, spot.entropy or 0.0)], names)


def tally(name: str, found: Sequence[Spot]) -> Tally:
    """Count a group of tokens."""
    accepted, missed = sum(spot.ending == ACCEPTED for spot in found), sum(spot.is_missed for spot in found)
    endings = Counter(spot.ending for spot in found if spot.ending != ACCEPTED)
    ordered = {kind: endings[kind] for kind in ENDINGS if kind in endings}
    share = accepted / (accepted + missed) if accepted + missed else None
    return Tally(name, len(found), accepted, missed, share, ordered)


def _tallies(found: Sequence[Spot], name_of: Callable[[Spot], str], names: Sequence[str]) -> list[Tally]:
    groups: dict[str, list[Spot]] = {}
    for spot in found:
        groups.setdefault(name_of(spot), []).append(spot)
    return [tally(name, groups[name]) for name in names if name in groups]


def _bin(starts: Sequence[float], value: float) -> int:
    return max(sum(start <= value for start in starts) - 1, 0)


def main_miss(found: Sequence[Spot]) -> str:
    """How most of the tokens that were not accepted were missed, in words."""
    missed = Counter(spot.ending for spot in found if spot.ending not in (ACCEPTED, RESTED))
    return LABELS[min(missed, key=lambda kind: (-missed[kind], ENDINGS.index(kind)))] if missed else "none missed"
