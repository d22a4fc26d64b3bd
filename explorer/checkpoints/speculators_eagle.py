"""EAGLE-1 and EAGLE-2 drafters as the package speculators writes them, in the words of the published layout.

``fusion_fc.*`` is EAGLE's ``fc``, ``transformer.*`` its one layer; the layer's shape stands in config.json below
``transformer_layer_config``. Source: ``src/speculators/models/eagle.py`` and ``convert/eagle/eagle_converter.py`` of
vllm-project/speculators (0370128, 035f9e0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from explorer.checkpoints.files import Report

MODEL_TYPE = "eagle"
_NAMES = {"fusion_fc.": "fc.", "transformer.": "layers.0."}
_NORMS = ("embedding_layernorm.", "pre_lm_head_layernorm.", "transformer.input_layernorm.")


def is_speculators(config: Mapping[str, Any]) -> bool:
    """Whether config.json is that of an EAGLE-1/2 drafter of speculators."""
    return config.get("speculators_model_type") == MODEL_TYPE


def from_speculators(
    config: dict[str, Any], tensors: dict[str, Tensor], report: Report
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(config, tensors) in the published layout; both as they are where they are not speculators'.

    What the published layout cannot say goes into ``report``: the norms of HASS's variant.
    """
    if not is_speculators(config):
        return config, tensors
    layer = config.get("transformer_layer_config")
    if not isinstance(layer, dict):
        report.add("config.json: transformer_layer_config must be an object")
        report.raise_if_any()
    assert isinstance(layer, dict)
    if config.get("layernorms") or any(name.startswith(_NORMS) for name in tensors):
        report.add("it has the extra norms of HASS's variant (layernorms), which EAGLE has not")
        report.raise_if_any()
    found = dict(layer) | {"bias": config.get("fusion_bias"), "num_hidden_layers": 1}
    renamed = [_published(name) for name in tensors]
    if twice := sorted(name for name, count in Counter(renamed).items() if count > 1):
        report.add(f"{', '.join(twice)} is there under two names")
        report.raise_if_any()
    return found, dict(zip(renamed, tensors.values(), strict=True))


def to_speculators(name: str) -> str:
    """speculators' name of a tensor of the published layout."""
    for theirs, ours in _NAMES.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


def _published(name: str) -> str:
    for theirs, ours in _NAMES.items():
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name
