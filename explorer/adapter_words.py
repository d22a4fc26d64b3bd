"""A target that its drafter adapts (Medusa-2): how far it is from the original, and what to say. Standard library only.

Speculative decoding gives the output of the target that verifies. Where the drafter brings an adapter, that is the
adapted target, so every screen says which target "lossless" speaks of.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AdapterRecord:
    """An adapter and what it changes, measured over ``num_tokens`` held-out tokens when it was trained.

    name: of the drafter that brings it; original: of the target without it. mean_kl: mean over these tokens of
    KL(original's next-token distribution || the adapted one's), in nats; agreement: share of them at which both put
    the same token first.
    """

    name: str
    original: str
    num_parameters: int
    mean_kl: float
    agreement: float
    num_tokens: int


def adapted_name(original: str, drafter: str) -> str:
    """What an adapted target is called: never as the original, whose output is another."""
    return f"{original} adapted by {drafter}"


def distance_text(adapter: AdapterRecord) -> str:
    """How far the adapted target is from the original, in a few words."""
    return f"first choice as the original's {agreement_text(adapter)}, mean KL {adapter.mean_kl:.2g}"


def agreement_text(adapter: AdapterRecord) -> str:
    """The share of equal first choices, with the digit that tells near ones apart."""
    return f"{100 * adapter.agreement:.1f} %"


def adapter_sentence(adapter: AdapterRecord, is_lossless: bool = True) -> str:
    """Which target a run's output belongs to, a clause without a full stop. is_lossless: by its acceptance rule."""
    claim = "lossless with respect to" if is_lossless else "measured against"
    return (
        f"{claim} the adapted target, not {adapter.original} itself: the drafter {adapter.name} brings an adapter for "
        f"it; on {adapter.num_tokens:,} held-out tokens {distance_text(adapter)}"
    )
