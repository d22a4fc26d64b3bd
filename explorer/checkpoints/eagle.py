"""EAGLE-1 and EAGLE-2 drafters: the same weights, EAGLE-2 only drafts with them differently.

Source: `eagle/model/cnets1.py` and `eagle/model/configs.py` of SafeAILab/EAGLE; ``d2t`` as EAGLE-3 stores it. The same
weights under speculators' names: see speculators_eagle.
"""

from __future__ import annotations

import re
from typing import Any

from torch import Tensor

from explorer.checkpoints.drafter import (
    LoadedDrafter,
    TargetFacts,
    describe,
    fill,
    name_of,
    require_floats,
)
from explorer.checkpoints.eagle_files import (
    DERIVED,
    EMBEDDING,
    TOKEN_MAP,
    check_embedding,
    check_token_map,
    count_kv_heads,
    divides,
    find_eagle3,
    read_numbers,
    share_embedding,
)
from explorer.checkpoints.files import (
    Report,
    expected_shapes,
    locate,
    parsing,
    quiet,
    read_config,
    read_tensors,
    shapes_of,
    weight_files,
)
from explorer.checkpoints.speculators_eagle import from_speculators
from explorer.models.eagle_layer import EagleConfig, EagleDrafter

_KEYS = "layers.0.self_attn.k_proj.weight"
_LAYER = re.compile(r"layers\.(\d{1,4})\.")


def load_eagle(source: str, target: TargetFacts) -> LoadedDrafter:
    """Read an EAGLE-1/2 drafter strictly and bind it to the target's embedding and LM head.

    ``module`` is an EagleDrafter. Raises one CheckpointError that lists all that is wrong.
    """
    folder = locate(source, "EAGLE drafter", ("*.safetensors", "*.bin"))
    tensors = {name: t for name, t in read_tensors(weight_files(folder)).items() if not DERIVED.fullmatch(name)}
    report = Report(f"EAGLE drafter {name_of(source)!r}", target.name)
    if eagle3 := find_eagle3(tensors):
        report.add(
            f"it is an EAGLE-3 drafter (it has {eagle3}): choose the method eagle3, or the target's EAGLE drafter, "
            "which eagle1 and eagle2 share"
        )
        report.raise_if_any()
    raw, tensors = from_speculators(read_config(folder), tensors, report)
    config = _to_eagle_config(read_numbers(raw, report), tensors)
    embedding = tensors.pop(EMBEDDING, None)
    _check(config, tensors, embedding, target, report)
    report.raise_if_any()
    module = EagleDrafter(config)
    fill(module, tensors, target)
    module.bind(share_embedding(embedding, target), target.lm_head.weight)
    return LoadedDrafter(module, describe(source, module))


def _to_eagle_config(numbers: dict[str, Any], tensors: dict[str, Tensor]) -> EagleConfig:
    """Layers and draft vocabulary are as the tensors say; so are biases and KV heads where config.json says nothing."""
    bias, qkv_bias = numbers.pop("bias"), numbers.pop("qkv_bias")
    listed, token_map = numbers.pop("draft_vocab_size"), tensors.get(TOKEN_MAP)
    reduced = listed if isinstance(listed, int) and listed != numbers["vocab_size"] else None
    layers = {int(match[1]) for name in tensors if (match := _LAYER.match(name))}
    numbers.setdefault("num_key_value_heads", count_kv_heads(numbers, tensors.get(_KEYS)))
    return EagleConfig(
        num_layers=1 + max(layers, default=0),
        **numbers | {"hidden_act": numbers["hidden_act"] or "silu"},
        fc_bias="fc.bias" in tensors if bias is None else bool(bias),
        qkv_bias="layers.0.self_attn.q_proj.bias" in tensors if qkv_bias is None else bool(qkv_bias),
        draft_vocab_size=reduced if token_map is None else token_map.numel(),
    )


def _check(
    config: EagleConfig, tensors: dict[str, Tensor], embedding: Tensor | None, target: TargetFacts, report: Report
) -> None:
    if config.num_layers > len(tensors):
        report.add(f"it has layers up to {config.num_layers - 1}, but only {len(tensors)} tensors")
    elif divides(config, report):
        with parsing("the EAGLE drafter's config.json"), quiet():
            expected = expected_shapes(lambda: EagleDrafter(config))
        report.compare(expected, shapes_of(tensors))
    require_floats(report, {name: t for name, t in tensors.items() if name != TOKEN_MAP})
    report.require_equal("hidden size", config.hidden_size, target.hidden_size)
    report.require_equal("vocabulary", config.vocab_size, target.vocab_size)
    check_embedding(embedding, config, report)
    if (token_map := tensors.get(TOKEN_MAP)) is not None:
        check_token_map(token_map, config.vocab_size, report)
