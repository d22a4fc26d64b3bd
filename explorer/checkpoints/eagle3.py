"""EAGLE-3 drafters in their published layout: one layer with its own norm and LM head, over a part of the vocabulary.

Source: `eagle/model/cnets.py` and `eagle/model/ea_model.py` of SafeAILab/EAGLE. Other layers than the published three
are named in config.json as vLLM reads them: the decoder layers whose inputs are the features. Where our own recipe
trained no LM head, config.json says ``"lm_head_shared": true`` and the head is the target's rows of the draft
vocabulary. The same network under speculators' names: see speculators_eagle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from explorer.checkpoints.drafter import LoadedDrafter, TargetFacts, describe, fill, name_of, require_floats
from explorer.checkpoints.eagle_files import (
    DERIVED,
    EMBEDDING,
    TOKEN_MAP,
    TOLD_BY_TENSORS,
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
from explorer.checkpoints.speculators_eagle import (
    EAGLE3_NORMS,
    EAGLE3_TYPE,
    NORM_BEFORE_RESIDUAL,
    from_speculators,
    type_of,
)
from explorer.models.eagle3_layer import Eagle3Config, Eagle3Drafter

FEATURE_LAYERS = "eagle_aux_hidden_state_layer_ids"
HEAD_SHARED = "lm_head_shared"
IS_DRAFTED = "t2d"  # [vocabulary] bool: whether the drafter can propose the token
_OPTIONAL = (*TOLD_BY_TENSORS, "head_dim", "target_hidden_size", "draft_vocab_size")
HEAD, _KEYS, _BIAS = "lm_head.weight", "midlayer.self_attn.k_proj.weight", "midlayer.self_attn.q_proj.bias"


def load_eagle3(source: str, target: TargetFacts) -> LoadedDrafter:
    """Read an EAGLE-3 drafter strictly and bind it to the target's embedding, where it brings none of its own.

    ``module`` is an Eagle3Drafter. Raises one CheckpointError that lists all that is wrong.
    """
    folder = locate(source, "EAGLE-3 drafter", ("*.safetensors", "*.bin"))
    tensors, raw = read_tensors(weight_files(folder)), read_config(folder)
    report = Report(f"EAGLE-3 drafter {name_of(source)!r}", target.name)
    _refuse_other_kinds(raw, tensors, report)
    raw, tensors = from_speculators(raw, tensors, report)
    is_drafted, embedding = tensors.pop(IS_DRAFTED, None), tensors.pop(EMBEDDING, None)
    tensors = {name: tensor for name, tensor in tensors.items() if not DERIVED.fullmatch(name)}
    config = _to_config(raw, tensors, target, report)
    _check_vocabulary(config, tensors, is_drafted, report)
    _share_head(raw, tensors, target, report)
    _check(config, tensors, target, report)
    check_embedding(embedding, config, report)
    if embedding is None and config.hidden_size != target.hidden_size:
        report.add(f"missing: {EMBEDDING} (the target's has width {target.hidden_size}, not {config.hidden_size})")
    report.raise_if_any()
    module = Eagle3Drafter(config)
    fill(module, tensors, target)
    module.bind(share_embedding(embedding, target))
    return LoadedDrafter(module, describe(source, module), feature_layers=config.feature_layers)


def published_layers(num_layers: int) -> tuple[int, int, int] | None:
    """The layers that published drafters read of a target with so many; None where these are not three in order."""
    low, middle, high = 2, num_layers // 2, num_layers - 3
    return (low, middle, high) if low < middle < high else None


def _refuse_other_kinds(raw: Mapping[str, Any], tensors: Mapping[str, Tensor], report: Report) -> None:
    """Raise where this is another kind of drafter."""
    others = sorted(name for name in tensors if name.startswith(("layers.", "transformer.")))
    if others and find_eagle3(tensors) is None:
        report.add(f"it is an EAGLE-1 or EAGLE-2 drafter (it has {others[0]}): choose the method eagle1 or eagle2")
    elif type_of(raw) not in (None, EAGLE3_TYPE):
        report.add(f"it is a drafter of another kind (speculators calls it {type_of(raw)})")
    report.raise_if_any()


def _to_config(
    raw: Mapping[str, Any], tensors: Mapping[str, Tensor], target: TargetFacts, report: Report
) -> Eagle3Config:
    """The shape by config.json; of KV heads, biases and the draft vocabulary by the tensors, where it says nothing."""
    numbers = read_numbers(raw, report, _OPTIONAL)
    listed, head = numbers.pop("draft_vocab_size"), tensors.get(HEAD)
    num_drafted = listed or (len(head) if head is not None and head.dim() else numbers["vocab_size"])
    numbers.setdefault("num_key_value_heads", count_kv_heads(numbers, tensors.get(_KEYS)))
    for name in ("bias", "qkv_bias"):  # of EAGLE-1: fc never has one here, and the tensors tell the others
        numbers.pop(name)
    for name in EAGLE3_NORMS:
        if raw.get(name):
            report.add(f"config.json: {name} is on, and the network here has no such norm")
    if not isinstance(norms_residual := raw.get(NORM_BEFORE_RESIDUAL, False), bool):
        report.add(f"config.json: {NORM_BEFORE_RESIDUAL} must be true or false, found {norms_residual!r}")
    return Eagle3Config(
        **numbers | {"hidden_act": numbers["hidden_act"] or "silu"},
        qkv_bias=_BIAS in tensors,
        draft_vocab_size=None if num_drafted == numbers["vocab_size"] else num_drafted,
        feature_layers=_feature_layers(raw, target.num_layers, report),
        norm_before_residual=norms_residual is True,
    )


def _feature_layers(raw: Mapping[str, Any], num_layers: int, report: Report) -> tuple[int, ...]:
    """The layers whose inputs are the features: those that config.json lists, else the published three."""
    listed = raw.get(FEATURE_LAYERS)
    if listed is not None:
        are_numbers = isinstance(listed, list) and all(type(layer) is int for layer in listed)
        if are_numbers and listed and len(set(listed)) == len(listed) and 0 <= min(listed) <= max(listed) < num_layers:
            return tuple(listed)
        report.add(f"config.json: {FEATURE_LAYERS} must be different layers from 0 to {num_layers - 1}: {listed!r}")
    elif isinstance(nested := raw.get("eagle_config"), dict) and nested.get(FEATURE_LAYERS) is not None:
        # There, projects count from the layer's output; which one wrote the file cannot be told.
        report.add(
            f"config.json: {FEATURE_LAYERS} stands under eagle_config, where it is not read: name the layers whose "
            "inputs are the features outside of it"
        )
    elif (published := published_layers(num_layers)) is not None:
        return published
    else:
        report.add(
            f"the layers that it reads by default, 2, {num_layers // 2} and {num_layers - 3}, are not three in order "
            f"in a target of {num_layers} layers: list others in config.json as {FEATURE_LAYERS}"
        )
    return (0, 1, 2)  # to look at everything else; what was noted is raised


def _check(config: Eagle3Config, tensors: Mapping[str, Tensor], target: TargetFacts, report: Report) -> None:
    if divides(config, report):
        with parsing("the EAGLE-3 drafter's config.json"), quiet():
            expected = expected_shapes(lambda: Eagle3Drafter(config))
        report.compare(expected, shapes_of(tensors))
    require_floats(report, {name: tensor for name, tensor in tensors.items() if name != TOKEN_MAP})
    report.require_equal("hidden size", config.target_hidden_size or config.hidden_size, target.hidden_size)
    report.require_equal("vocabulary", config.vocab_size, target.vocab_size)


def _share_head(raw: Mapping[str, Any], tensors: dict[str, Tensor], target: TargetFacts, report: Report) -> None:
    """Put the target's rows of the draft vocabulary in the place of an LM head that config.json says is shared."""
    is_shared = raw.get(HEAD_SHARED, False)
    if not isinstance(is_shared, bool):
        report.add(f"config.json: {HEAD_SHARED} must be true or false, found {is_shared!r}")
    elif is_shared and HEAD in tensors:
        report.add(f"config.json: {HEAD_SHARED} is on, but there is {HEAD}")
    elif is_shared and not report.num_problems:  # of a token map that is wrong no rows can be read
        head, token_map = target.lm_head.weight.detach(), tensors.get(TOKEN_MAP)
        if token_map is not None:
            head = head[(token_map + torch.arange(len(token_map))).to(head.device)]
        tensors[HEAD] = head


def _check_vocabulary(
    config: Eagle3Config, tensors: dict[str, Tensor], is_drafted: Tensor | None, report: Report
) -> None:
    """``d2t`` and ``t2d`` say the same; over the full vocabulary neither says anything, and ``d2t`` is taken out."""
    token_map = tensors.get(TOKEN_MAP)
    if config.draft_vocab_size is None:
        if tensors.pop(TOKEN_MAP, torch.zeros(1)).any():
            report.add(f"{TOKEN_MAP} maps tokens, but the draft vocabulary is the whole one")
        return
    if token_map is None:
        return  # the comparison of names says that it is missing
    before = report.num_problems
    check_token_map(token_map, config.vocab_size, report)
    if is_drafted is None or report.num_problems > before:
        return
    if is_drafted.shape == (config.vocab_size,):  # before anything of that size is made
        expected = torch.zeros(config.vocab_size, dtype=torch.bool)
        expected[token_map + torch.arange(len(token_map))] = True
        if torch.equal(is_drafted.bool(), expected):
            return
    report.add(f"{IS_DRAFTED} names other tokens than {TOKEN_MAP}")
