"""EAGLE drafters as the package speculators writes them, in the words of the published layouts.

A drafter's decoder layer is described below ``transformer_layer_config``, what else it is beside that. Of EAGLE-1 and
EAGLE-2, ``fusion_fc.*`` is the published ``fc``, ``transformer.*`` the one layer; of EAGLE-3, ``layers.0.*`` is
``midlayer``. Sources, of vllm-project/speculators: ``src/speculators/models/eagle.py`` and
``convert/eagle/eagle_converter.py`` (0370128, 035f9e0); ``models/eagle3/{config,core,model_definitions}.py`` and
``convert/eagle/eagle3_converter.py`` (release 0.9.0).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from explorer.checkpoints.files import Report

MODEL_TYPE, EAGLE3_TYPE = "eagle", "eagle3"
NORM_BEFORE_RESIDUAL = "norm_before_residual"
_TYPE, _VERSION = "speculators_model_type", "0.1.0"  # the schema wants a version; its readers only keep it
_NAMES = {
    MODEL_TYPE: {"fusion_fc.": "fc.", "transformer.": "layers.0."},
    EAGLE3_TYPE: {"layers.0.": "midlayer."},
}
_FEATURE_LAYERS = "eagle_aux_hidden_state_layer_ids"
EAGLE3_NORMS = ("norm_before_fc", "fc_norm", "norm_output")  # switches for norms that the published network has not
_BESIDE_LAYER = ("draft_vocab_size", "target_hidden_size", NORM_BEFORE_RESIDUAL, _FEATURE_LAYERS, *EAGLE3_NORMS)
_NORMS = ("embedding_layernorm.", "pre_lm_head_layernorm.", "transformer.input_layernorm.")


def type_of(config: Mapping[str, Any]) -> str | None:
    """Which of speculators' drafters config.json describes, None for other layouts."""
    found = config.get(_TYPE)
    return None if found is None else str(found)


def from_speculators(
    config: dict[str, Any], tensors: dict[str, Tensor], report: Report
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(config, tensors) in the published layout; both as they are where they are not of EAGLE drafters of speculators.

    What the published layout cannot say goes into ``report``: the norms of HASS's variant, a norm that is not told.
    """
    kind = type_of(config)
    if kind not in _NAMES:
        return config, tensors
    layer = config.get("transformer_layer_config")
    if not isinstance(layer, dict):
        report.add("config.json: transformer_layer_config must be an object")
        report.raise_if_any()
    assert isinstance(layer, dict)
    found = _eagle3(config, layer, report) if kind == EAGLE3_TYPE else _eagle(config, layer, tensors, report)
    report.raise_if_any()
    renamed = [_renamed(name, _NAMES[kind]) for name in tensors]
    if twice := sorted(name for name, count in Counter(renamed).items() if count > 1):
        report.add(f"{', '.join(twice)} is there under two names")
        report.raise_if_any()
    return found, dict(zip(renamed, tensors.values(), strict=True))


def to_speculators(name: str, kind: str = MODEL_TYPE) -> str:
    """speculators' name of a tensor of the published layout."""
    return _renamed(name, {ours: theirs for theirs, ours in _NAMES[kind].items()})


def header(kind: str, num_tokens: int, verifier: str, architectures: Sequence[str]) -> dict[str, Any]:
    """The fields of config.json that say what drafter this is, and of which target (``verifier``).

    num_tokens: the length of its chain, for programs that are told nothing else.
    """
    return {
        _TYPE: kind,
        "speculators_version": _VERSION,
        "speculators_config": {
            "algorithm": kind,
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": num_tokens}],
            "default_proposal_method": "greedy",
            "verifier": {"name_or_path": verifier, "architectures": list(architectures)},
        },
    }


def _eagle(
    config: dict[str, Any], layer: dict[str, Any], tensors: Mapping[str, Tensor], report: Report
) -> dict[str, Any]:
    if config.get("layernorms") or any(name.startswith(_NORMS) for name in tensors):
        report.add("it has the extra norms of HASS's variant (layernorms), which EAGLE has not")
    return layer | {"bias": config.get("fusion_bias"), "num_hidden_layers": 1}


def _eagle3(config: dict[str, Any], layer: dict[str, Any], report: Report) -> dict[str, Any]:
    if NORM_BEFORE_RESIDUAL not in config:
        report.add(
            f"config.json: {NORM_BEFORE_RESIDUAL} is missing, for which speculators takes false and vLLM true: add it"
        )
    if "sliding_attention" in (layer.get("layer_types") or ()):
        report.add("config.json: its layer attends to a sliding window (layer_types)")
    return layer | {name: config[name] for name in _BESIDE_LAYER if name in config}


def _renamed(name: str, prefixes: Mapping[str, str]) -> str:
    for old, new in prefixes.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name
