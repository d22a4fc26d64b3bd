"""The methods by name: adding one is one file, one name here, one README line."""

from __future__ import annotations

from explorer.methods.autoregressive import Autoregressive
from explorer.methods.base import Method
from explorer.methods.eagle1 import Eagle1
from explorer.methods.eagle2 import Eagle2
from explorer.methods.medusa import Medusa

METHODS: dict[str, type[Method]] = {method.name: method for method in (Autoregressive, Medusa, Eagle1, Eagle2)}
