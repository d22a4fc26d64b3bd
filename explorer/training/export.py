"""Drafters as published files: float16 safetensors, a config, and a card that says how they were made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from explorer.checkpoints.draft_model import SHARED
from explorer.checkpoints.eagle3 import FEATURE_LAYERS, HEAD, HEAD_SHARED, IS_DRAFTED
from explorer.checkpoints.files import read_config
from explorer.checkpoints.smollm2 import LABEL
from explorer.checkpoints.target_adapter import ADAPTER, ADAPTER_FILE
from explorer.checkpoints.token_map import TOKEN_MAP_FILE
from explorer.checkpoints.vllm_medusa import TOKEN_MAP
from explorer.checkpoints.written import llama_fields
from explorer.models.eagle3_layer import Eagle3Drafter
from explorer.models.eagle_layer import EagleDrafter
from explorer.models.low_rank import TargetAdapter
from explorer.models.medusa_heads import MedusaHeads
from explorer.training.draft_model import FirstLayers
from explorer.training.storage import replace_file, write_json, write_tensors

FROZEN = (
    "on the frozen target {target}; it drafts, the target decides, so the\noutput stays the target's whatever this "
    "drafter guesses."
)
ADAPTED = (
    "with the target {target}, which its adapter changes: loading it makes\nan adapted target, and the output is "
    "lossless with respect to the adapted target, whatever the heads guess. How far\nthat target is from {target} "
    "stands among the measurements below."
)
_NOT_STORED = ("_name_or_path", "transformers_version")  # where and with what a config was made


@dataclass(frozen=True)
class CardFacts:
    """What a card tells. recipe and figures: label -> value, in the order shown; history: held-out figures by step.

    claim: what the drafter does to its target's output, with a place for the target's name.
    """

    title: str
    target: str
    text: str
    command: str
    recipe: dict[str, Any]
    figures: dict[str, Any]
    history: list[dict[str, float]]
    claim: str = FROZEN


def save_medusa(network: MedusaHeads, folder: Path, target_name: str, draft_tokens: torch.Tensor) -> None:
    """Layout B ("version 2"): the blocks alone, to be read through the target's LM head.

    draft_tokens: int64 [draft vocabulary] target ids, any order, which go into a token map beside them.
    """
    write_tensors(folder / "medusa_lm_head.safetensors", network.state_dict())
    write_tensors(folder / TOKEN_MAP_FILE, {TOKEN_MAP: draft_tokens.sort().values})
    config = {
        "medusa_num_heads": network.num_heads,
        "medusa_num_layers": network.num_layers,
        "version": "2",
        "base_model_name_or_path": target_name,
    }
    write_json(folder / "config.json", config)


def save_medusa2(
    network: MedusaHeads, adapter: TargetAdapter, folder: Path, facts: dict[str, Any], draft_tokens: torch.Tensor
) -> None:
    """Heads as of ``save_medusa``, and beside them the adapter. facts: the target's name, and what config.json says
    of the adapter (explorer.checkpoints.target_adapter).
    """
    write_tensors(folder / ADAPTER_FILE, adapter.state_dict())
    save_medusa(network, folder, facts["target"], draft_tokens)
    config = read_config(folder) | {ADAPTER: {name: value for name, value in facts.items() if name != "target"}}
    write_json(folder / "config.json", config)


def save_eagle(network: EagleDrafter, folder: Path, target_name: str) -> None:
    """EAGLE-1/2's layout with EAGLE-3's `d2t`; the embedding and LM head stay with the target."""
    shape = network.config
    write_tensors(folder / "model.safetensors", network.state_dict())
    config = {"architectures": ["LlamaForCausalLM"]} | llama_fields(shape, target_name)
    config |= {"draft_vocab_size": shape.draft_vocab_size, "bias": shape.fc_bias, "qkv_bias": shape.qkv_bias}
    config |= {"torch_dtype": "float16"}
    write_json(folder / "config.json", config)


def save_eagle3(network: Eagle3Drafter, folder: Path, target_name: str, *, has_own_head: bool = True) -> None:
    """EAGLE-3's layout, with the layers it reads named as vLLM names them; the embedding stays with the target.

    So does an LM head that is the target's rows: without ``has_own_head`` it is not stored.
    """
    tensors, shape = network.state_dict(), network.config
    if not has_own_head:
        del tensors[HEAD]
    drafted = network.to_target(torch.arange(network.num_draft_tokens))
    if shape.draft_vocab_size is not None:
        tensors[IS_DRAFTED] = torch.zeros(shape.vocab_size, dtype=torch.bool).index_fill(0, drafted, True)
    write_tensors(folder / "model.safetensors", tensors)
    config = {"architectures": ["LlamaForCausalLMEagle3"]} | llama_fields(shape, target_name)
    config |= {} if has_own_head else {HEAD_SHARED: True}
    config |= {"draft_vocab_size": len(drafted), FEATURE_LAYERS: list(shape.feature_layers), "torch_dtype": "float16"}
    optional = {"head_dim": shape.head_dim, "target_hidden_size": shape.target_hidden_size}
    config |= {name: value for name, value in optional.items() if value is not None}
    write_json(folder / "config.json", config)


def save_draft_model(network: FirstLayers, folder: Path, target_name: str) -> None:
    """A causal LM's own layout without embedding and LM head: ``embedding_shared`` says that they are the target's."""
    write_tensors(folder / "model.safetensors", network.state_dict())
    own = {name: value for name, value in network.config.to_diff_dict().items() if name not in _NOT_STORED}
    own |= {"base_model_name_or_path": target_name, SHARED: True, "dtype": "float16"}
    write_json(folder / "config.json", own)


def write_card(folder: Path, facts: CardFacts) -> None:
    """README.md of a drafter folder, in the form of a model card; it names a licence where that is ours to give."""
    is_ours = facts.target == LABEL
    front, licence = ("license: apache-2.0\n", " Licence: Apache-2.0.") if is_ours else ("", "")
    parts = [
        f"---\n{front}base_model: {facts.target}\n---\n\n# {facts.title}\n",
        f"Trained for Draft Tree Explorer {facts.claim.format(target=facts.target)}{licence}\n",
        f"## Text\n\n{facts.text}\n",
        f"## Recipe\n\n`{facts.command}`\n\n{_table(facts.recipe)}",
        f"## Measured on held-out text\n\n{_table(facts.figures)}",
        f"## Held-out figures while training\n\n{_history(facts.history)}",
    ]
    replace_file(folder / "README.md", "\n".join(parts).encode())


def _table(rows: dict[str, Any]) -> str:
    return "| what | value |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows.items())


def _history(history: list[dict[str, float]]) -> str:
    if not history:
        return "(none)\n"
    names = list(history[0])
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    return head + "".join(f"| {' | '.join(str(row[name]) for name in names)} |\n" for row in history)
