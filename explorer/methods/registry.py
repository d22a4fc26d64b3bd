"""The methods by name: adding one is one file, one name here, one README line."""

from __future__ import annotations

from explorer.methods.autoregressive import Autoregressive
from explorer.methods.base import Method
from explorer.methods.draft_model import DraftModel
from explorer.methods.eagle1 import Eagle1
from explorer.methods.eagle2 import Eagle2
from explorer.methods.eagle3 import Eagle3
from explorer.methods.jacobi import Jacobi
from explorer.methods.lookahead import Lookahead
from explorer.methods.medusa import Medusa
from explorer.methods.prompt_lookup import PromptLookup

# The page's order; where the chosen method is not to be had, it takes the last that is: the drafters' methods end it.
_ALL: tuple[type[Method], ...] = (
    *(Autoregressive, PromptLookup, Jacobi, Lookahead),
    *(DraftModel, Medusa, Eagle1, Eagle2, Eagle3),
)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}
