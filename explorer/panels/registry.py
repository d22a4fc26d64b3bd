"""The panels by method. Standard library only."""

from __future__ import annotations

from collections.abc import Callable

from explorer.panels.draft_model import DraftModelPanel, draft_model_panel
from explorer.panels.eagle import EaglePanel, eagle_panel
from explorer.panels.jacobi import JacobiPanel, jacobi_panel
from explorer.panels.lookahead import LookaheadPanel, lookahead_panel
from explorer.panels.medusa import MedusaPanel, medusa_panel
from explorer.panels.prompt_lookup import PromptLookupPanel, prompt_lookup_panel
from explorer.trace import Step, Trace

Panel = MedusaPanel | EaglePanel | DraftModelPanel | JacobiPanel | LookaheadPanel | PromptLookupPanel

PANELS: dict[str, Callable[[Trace, Step], Panel | None]] = {
    "medusa": medusa_panel,
    "eagle1": eagle_panel,
    "eagle2": eagle_panel,
    "eagle3": eagle_panel,
    "draft_model": draft_model_panel,
    "jacobi": jacobi_panel,
    "lookahead": lookahead_panel,
    "prompt_lookup": prompt_lookup_panel,
}


def panel_of(trace: Trace, step: Step) -> Panel | None:
    """What only this method has to show of a step; None where it, or the record, has nothing.

    ``kind`` of the panel says which one it is. Token ids stand in fields whose names end in token, tokens or tops.
    """
    make = PANELS.get(trace.method)
    return None if make is None else make(trace, step)
