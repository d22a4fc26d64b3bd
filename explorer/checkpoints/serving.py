"""Whether a drafter's folder is what vLLM or SGLang load: by its own files, after it was read strictly.

Sources as in explorer.checkpoints.layouts.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from explorer.checkpoints.drafter import check_token_ids
from explorer.checkpoints.drafter_source import DrafterSource, EagleSource, MedusaSource
from explorer.checkpoints.eagle3 import FEATURE_LAYERS
from explorer.checkpoints.eagle3_layouts import NUM_FEATURES, SGLANG_LAYERS
from explorer.checkpoints.files import Report, is_quantized, parsing, read_config, read_tensors, weight_files
from explorer.checkpoints.layouts import SGLANG_MAP
from explorer.checkpoints.medusa import FILES
from explorer.checkpoints.speculators_eagle import NORM_BEFORE_RESIDUAL, type_of
from explorer.checkpoints.vllm_medusa import TOKEN_MAP, is_vllm
from explorer.config import DEFAULT_TARGET
from explorer.errors import CheckpointError

VLLM, SGLANG = "vllm", "sglang"
_SGLANG_CLASS, _EAGLE3_CLASS = "LlamaForCausalLMEagle", "LlamaForCausalLMEagle3"


def check_layout(server: str, folder: Path, source: str, drafter: DrafterSource, target: str = DEFAULT_TARGET) -> None:
    """Raise CheckpointError with all that keeps the server from loading it, and the command that mends it.

    source, target: how the user named the drafter and its target.
    """
    if server == SGLANG and isinstance(drafter, MedusaSource):
        raise CheckpointError("SGLang has no Medusa: choose --server vllm")
    paths = weight_files(folder, extra=FILES)
    config, tensors = read_config(folder), read_tensors(paths)
    check = _CHECKS[server, drafter.kind]
    problems = check(config, tensors)
    if is_quantized(paths):  # vLLM takes 8-bit weights without 8-bit activations as pack-quantized alone
        problems.append("it is stored as 8-bit integers")
    if server == SGLANG and isinstance(drafter, EagleSource) and (path := token_map(folder)):
        problems += _token_map(path, drafter.config.vocab_size)
    if problems:
        words = [source, "--to", server, *([] if target == DEFAULT_TARGET else ["--target", target]), "--out", "DIR"]
        mend = f"`python -m explorer convert {shlex.join(words)}` writes one that it does"
        raise CheckpointError(f"{server} does not load {source} as it is: {'; '.join(problems)}; {mend}")


def token_map(folder: Path) -> Path | None:
    """SGLang's token map beside a drafter, where there is one."""
    path = folder / SGLANG_MAP
    return path if path.is_file() else None


def _token_map(path: Path, vocab_size: int) -> list[str]:
    """What is wrong with a list of token ids as SGLang reads it."""
    report = Report(SGLANG_MAP)
    with parsing(str(path)):
        ids = torch.as_tensor(torch.load(path, map_location="cpu", weights_only=True))
        is_whole = not ids.is_floating_point() and ids.dtype != torch.bool
        check_token_ids(SGLANG_MAP, ids.long() if is_whole else ids, vocab_size, report)
    return [f"{SGLANG_MAP} must list different token ids below {vocab_size}"] if report.num_problems else []


def _vllm_medusa(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    if not is_vllm(tensors):
        return ["its heads have Medusa's own names, not vLLM's blocks.* and lm_heads.*"]
    problems = [] if config.get("model_type") == "medusa" else ["config.json: model_type is not medusa"]
    plain = {name.removeprefix("medusa_heads."): tensor for name, tensor in tensors.items()}
    if "blocks.0.layers.0.bias" in plain and not config.get("medusa_fc_bias"):
        problems.append("config.json: medusa_fc_bias is not true, so that the blocks' biases would be left out")
    vocabulary, cut = config.get("vocab_size"), config.get("truncated_vocab_size")
    has_cut = cut is not None and cut != vocabulary
    if has_cut != (TOKEN_MAP in plain):
        problems.append("config.json: truncated_vocab_size and the tensor token_map must both be there, or neither")
    return problems


def _vllm_eagle(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    if type_of(config):
        return ["it is in speculators' layout, of which vLLM loads EAGLE-3 only"]
    problems = _common(config, tensors)
    if "fc.bias" in tensors:
        problems.append("fc has a bias, which is no parameter there")
    return problems


def _sglang_eagle(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    if type_of(config):
        return ["it is in speculators' layout"]
    problems = _common(config, tensors)
    if config.get("architectures") != [_SGLANG_CLASS]:
        problems.append(f"config.json: architectures is not [{_SGLANG_CLASS}]")
    if "fc.bias" not in tensors:
        problems.append("fc has no bias, and the one there would be left as chance made it")
    return problems


def _vllm_eagle3(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    if type_of(config) is None:
        return _eagle3(config, tensors)
    problems = _features(config) + _biases(tensors)
    told = config.get("speculators_config")
    methods = told.get("proposal_methods") if isinstance(told, dict) else None
    first = methods[0] if isinstance(methods, list) and methods else None
    if not isinstance(first, dict) or first.get("speculative_tokens") is None:
        problems.append("config.json: speculators_config has no proposal_methods with speculative_tokens")
    if not isinstance(told, dict) or not isinstance(told.get("verifier"), dict):
        problems.append("config.json: speculators_config has no verifier")
    return problems


def _sglang_eagle3(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    if type_of(config):
        return ["it is in speculators' layout"]
    nested = config.get(SGLANG_LAYERS)
    is_named = isinstance(nested, dict) and FEATURE_LAYERS in nested
    problems = _eagle3(config, tensors)
    if FEATURE_LAYERS in config and not is_named:
        problems.append(f"config.json: the layers that it reads stand outside {SGLANG_LAYERS}, where they are not read")
    if config.get(NORM_BEFORE_RESIDUAL):
        problems.append(f"config.json: {NORM_BEFORE_RESIDUAL} is true, which is not read there")
    return problems


def _eagle3(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    problems = _features(config) + _biases(tensors)
    if config.get("architectures") != [_EAGLE3_CLASS]:
        problems.append(f"config.json: architectures is not [{_EAGLE3_CLASS}]")
    if "draft_vocab_size" not in config:
        problems.append("config.json: draft_vocab_size is missing")
    return problems


def _features(config: dict[str, Any]) -> list[str]:
    count = len(config.get(FEATURE_LAYERS) or range(NUM_FEATURES))
    return [] if count == NUM_FEATURES else [f"it reads {count} layers, and {NUM_FEATURES} are read there"]


def _biases(tensors: dict[str, Tensor]) -> list[str]:
    return ["it has biases, which have no place there"] if any(name.endswith(".bias") for name in tensors) else []


def _common(config: dict[str, Any], tensors: dict[str, Tensor]) -> list[str]:
    problems = ["it has a draft vocabulary (d2t), which is no tensor there"] if "d2t" in tensors else []
    if config.get("bias"):
        problems.append("config.json: bias is true, which there means biases of the attention")
    return problems


_CHECKS = {
    (VLLM, "medusa"): _vllm_medusa,
    (VLLM, "eagle"): _vllm_eagle,
    (VLLM, "eagle3"): _vllm_eagle3,
    (SGLANG, "eagle"): _sglang_eagle,
    (SGLANG, "eagle3"): _sglang_eagle3,
}
