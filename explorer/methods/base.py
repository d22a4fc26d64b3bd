"""What a method is: three calls around the engine's prompt pass, verify pass and commit.

A method never calls the target; the engine does, and hands it the outputs. So no method can verify differently.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from torch import Tensor

from explorer.config import Sampling
from explorer.errors import SettingError
from explorer.sampling import Sampler
from explorer.tree import DraftTree
from explorer.verify import Verdict

if TYPE_CHECKING:  # transformers comes with the target: who only reads Settings (the page's form) need not wait for it
    from explorer.target import Target, TargetOutput


class Draft(NamedTuple):
    """What a method proposes for one step.

    considered: everything expanded (EAGLE-2 before its rerank). kept: ascending rows of it sent to the target, None
    for all; the rest are shown as pruned ghosts. draft_dists: [P, V] over the target's vocabulary, the distributions
    that sampled children were drawn from, without replacement and in row order; dist_rows: the P considered rows they
    follow. Rows not listed have deterministic children. passes_ms: one entry a drafter pass. rank_of: (considered
    row, target token id) -> the token's rank in the drafter's own order after that row, 0 = first, None where it never
    looked or cannot draft that token (the record reads next_draft_rank from it). extra: JSON values only this method
    has; read_extra: more of them, read outside the measured times. plain_reason: why the root stands alone, where it
    is not that nothing was found ("fallback").
    """

    considered: DraftTree
    kept: Tensor | None = None
    draft_dists: Tensor | None = None
    dist_rows: Sequence[int] = ()
    passes_ms: Sequence[float] = ()
    rank_of: Callable[[int, int], int | None] | None = None
    extra: dict[str, Any] | None = None
    read_extra: Callable[[], dict[str, Any]] | None = None
    plain_reason: str | None = None

    def kept_rows(self) -> list[int]:
        """Rows of ``considered`` that the target verifies, ascending."""
        return list(range(len(self.considered))) if self.kept is None else self.kept.tolist()

    def tree(self) -> DraftTree:
        """The rows the target verifies."""
        return self.considered if self.kept is None else self.considered.keep(self.kept)

    def dists(self) -> dict[int, Tensor]:
        """Row of ``tree()`` -> the distribution [V] that its children were drawn from; absent where they were not."""
        if self.draft_dists is None:
            return {}
        new_row = {old: new for new, old in enumerate(self.kept_rows())}
        pairs = zip(self.dist_rows, self.draft_dists, strict=True)
        return {new_row[row]: dist for row, dist in pairs if row in new_row}


@dataclass(frozen=True)
class NoSettings:
    """Settings of a method that has none."""


class Method(ABC):
    """One way to draft. ``Settings`` is a frozen dataclass of explorer.config settings.

    acceptances: the rules it can be verified by; with typical come the settings ``threshold`` and ``alpha``.
    can_rest: a plain step may take the place of its draft (``rest``).
    trained_context: positions the drafter was trained on, None where there is no such bound.
    feature_layers: decoder layers of the target whose inputs it reads; whoever starts the target asks for them.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    needs_drafter: ClassVar[bool] = False
    Settings: ClassVar[type] = NoSettings
    acceptances: ClassVar[tuple[str, ...]] = ("greedy", "rejection")
    can_rest: ClassVar[bool] = False

    def __init__(self, target: Target, drafter: Any, settings: Any) -> None:
        self.target = target
        self.drafter = drafter
        self.settings = settings  # as resolved: a method that clamps them keeps what it uses
        self.trained_context: int | None = None
        self.feature_layers: tuple[int, ...] = ()
        self.notices: list[str] = []  # what was clamped to this target and drafter, in words

    @abstractmethod
    def start(self, prompt_ids: list[int], output: TargetOutput, sampler: Sampler) -> float | None:
        """Begin a run after the prompt pass; returns the milliseconds of the drafter's own prompt pass, if any."""

    @abstractmethod
    def draft(self, root: int) -> Draft:
        """Propose rows below ``root``, the last emitted token."""

    def rest(self, root: int) -> None:
        """A plain step below ``root`` takes the place of a draft; ``update`` follows as ever."""
        raise NotImplementedError(f"{self.name} drafts at every step")

    @abstractmethod
    def update(self, verdict: Verdict, output: TargetOutput) -> None:
        """Learn what was accepted; ``output`` has one row per row of the verified tree."""


def check_acceptance(method: Method | type[Method], sampling: Sampling) -> None:
    """Refuse an acceptance rule that a method's drafts cannot be verified by, with SettingError."""
    if sampling.rule not in method.acceptances:
        allowed = " or ".join(method.acceptances)
        raise SettingError(f"{method.name} has no {sampling.rule} acceptance: choose {allowed}, or leave it out")
