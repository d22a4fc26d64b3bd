"""Loading a target: any transformers causal language model with ordinary attention, from a directory or the hub."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from explorer.adapter_words import AdapterRecord
from explorer.checkpoints import smollm2
from explorer.checkpoints.files import Report, locate, parsing, quiet, read_json, weight_files
from explorer.checkpoints.int8 import CONFIG_KEY
from explorer.checkpoints.placement import choose_device, choose_dtype
from explorer.checkpoints.split import device_map
from explorer.checkpoints.support import check_numbers, refuse_sinks, refuse_unsupported
from explorer.config import DEFAULT_TARGET
from explorer.errors import CheckpointError, DeviceError, FetchError
from explorer.models.split import SPLIT

# Tensors that are no part of the target: Medusa-2 stores its heads in the model's own files, and old Llama
# checkpoints store rotary frequencies that are computed today.
_NOT_THE_TARGETS = re.compile(r"medusa_head\.|.*rotary_emb\.inv_freq$")
_TURN_MARK = "end-of-turn-probe"


@dataclass(frozen=True)
class LoadedTarget:
    """A target as loaded: ``stop_ids`` is every token that ends an answer, ``backend`` what its attention runs on.

    adapter: what a drafter changed of its weights (explorer.checkpoints.target_adapter), None for the original.
    """

    model: Any
    tokenizer: Any
    name: str
    stop_ids: frozenset[int]
    backend: str
    adapter: AdapterRecord | None = None


def load_target(source: str, *, device: str = "auto", dtype: str = "auto", backend: str = "auto") -> LoadedTarget:
    """Load ``source``: "smollm2", a checkpoint directory, or a hub id.

    Raises CheckpointError with everything that does not fit, FetchError where the default target is not here yet, and
    DeviceError for a device, dtype or backend that this machine lacks.
    """
    on = choose_device(device)
    folder, name = find_folder(source)
    what = f"target {name!r}"
    config = read_model_config(folder, what)
    chosen_dtype = choose_dtype(dtype, on, config)
    if device == SPLIT:  # a kernel would be launched on the main device, wherever the layer is
        backend = "naive"
    attention, used = _attention(backend, on, chosen_dtype, config.get_text_config())
    options: dict[str, Any] = {"dtype": chosen_dtype, "attn_implementation": attention}
    model = _load_split(folder, config, options) if device == SPLIT else load_model(folder, config, options).to(on)
    with parsing(what):
        model = model.eval().requires_grad_(False)
    tokenizer = load_tokenizer(folder, what)
    return LoadedTarget(model, tokenizer, name, find_stop_ids(model, tokenizer), used)


def _load_split(folder: Path, config: Any, options: dict[str, Any]) -> Any:
    """The model over several places; on one device where that holds all of it."""
    scratch = TemporaryDirectory(prefix="split-")  # gets weights that no file has as they are needed
    places = device_map(_skeleton(config), options["dtype"])
    logging.getLogger("accelerate").setLevel(logging.ERROR)  # it warns that it does what it was asked for
    model = load_model(folder, config, options | {"device_map": places, "offload_folder": scratch.name})
    model.scratch = scratch  # there for as long as the model is
    return model


def load_reference(source: str, device: torch.device, dtype: torch.dtype) -> Any:
    """transformers' own model of a source that ``load_target`` accepted, its attention untouched, to compare with."""
    from transformers import AutoModelForCausalLM

    folder, name = find_folder(source)
    with parsing(f"target {name!r}"), quiet():
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, local_files_only=True, trust_remote_code=False
        )
    return model.to(device).eval().requires_grad_(False)


def _attention(backend: str, device: torch.device, dtype: torch.dtype, config: Any) -> tuple[str, str]:
    """(name for transformers, backend that it runs on) for a model of this (text) config.

    The kernels are compared with the reference before they are used: "auto" falls back where they differ.
    """
    from explorer.models.attention import register_tree_attention
    from kernels.dispatch import BackendUnavailableError, resolve

    heads = config.num_attention_heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    try:
        used = resolve(backend, device, head_dim)
        if used == "triton":
            from kernels.tree_attention.agreement import agrees

            if not agrees((heads, getattr(config, "num_key_value_heads", None) or heads), head_dim, dtype, device):
                if backend == used:
                    raise BackendUnavailableError(
                        f"the triton backend does not agree with the reference on this {device.type} device: "
                        "choose auto or naive"
                    )
                used = "naive"
        return register_tree_attention(used, device, head_dim), used
    except BackendUnavailableError as error:
        raise DeviceError(str(error)) from error


def find_folder(source: str) -> tuple[Path, str]:
    """(directory, display name) of a source."""
    if source == DEFAULT_TARGET:
        if not smollm2.is_fetched():
            raise FetchError(
                f"the default target {smollm2.LABEL} is not here yet: run `python -m explorer fetch` (93 MB, once); "
                "recorded traces open without it"
            )
        return smollm2.target_dir(), smollm2.LABEL
    folder = locate(source, "target")
    return folder, Path(source).resolve().name if Path(source).expanduser().is_dir() else source


def read_model_config(folder: Path, what: str, borrows_embedding: bool = False) -> Any:
    """The config of a causal LM that our attention and cache can run; CheckpointError says why one cannot.

    borrows_embedding: the weight files lack the embedding and the LM head, see ``embedding_names``.
    """
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    with parsing(what), quiet():
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        text_config = config.get_text_config()
        model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    if model_class is None:
        raise CheckpointError(f"{what}: {config.model_type!r} is no causal language model")
    if (folder / "generation_config.json").exists():
        read_json(folder / "generation_config.json")  # transformers passes over a broken one, and its stop ids
    refuse_unsupported(text_config, model_class, what)
    check_numbers(text_config, what)
    _check_size(folder, config, what, borrows_embedding)
    return config


def embedding_names(config: Any) -> frozenset[str]:
    """Names of the embedding and the LM head in the state dict of this config's model."""
    skeleton = _skeleton(config)
    outer = {id(layer.weight) for layer in (skeleton.get_input_embeddings(), skeleton.get_output_embeddings())}
    named = skeleton.named_parameters(remove_duplicate=False)  # tied, both names mean one parameter
    return frozenset(name for name, parameter in named if id(parameter) in outer)


def _skeleton(config: Any) -> Any:
    """The model of a config without its memory."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def _check_size(folder: Path, config: Any, what: str, borrows_embedding: bool) -> None:
    """Refuse a config far larger than its weights before anything of that size is allocated."""
    with parsing(what):
        num_bytes = sum(path.stat().st_size for path in weight_files(folder))
        borrowed = embedding_names(config) if borrows_embedding else ()
        parameters = dict(_skeleton(config).named_parameters())
    num_parameters = sum(parameter.numel() for name, parameter in parameters.items() if name not in borrowed)
    if num_parameters > 2 * num_bytes:  # the smallest weights in use take half a byte
        raise CheckpointError(
            f"{what}: config.json describes {num_parameters:,} parameters, its weight files hold {num_bytes:,} bytes"
        )


def load_model(
    folder: Path,
    config: Any,
    options: dict[str, Any],
    borrowed: frozenset[str] = frozenset(),
    tensors: dict[str, Tensor] | None = None,
) -> Any:
    """The model with every tensor accounted for; transformers alone would fill gaps with random numbers.

    borrowed: tensors that the files need not have, because the caller brings them; they are random here. tensors: what
    the files hold, where transformers could not read them.
    """
    from transformers import AutoModelForCausalLM, GenerationConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    what, model_class = f"target {folder}", AutoModelForCausalLM
    if tensors is not None:
        vars(config).pop(CONFIG_KEY, None)  # for it, transformers would want a package of its own
        model_class = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]  # the other takes no tensors
        options = options | {"state_dict": tensors}
    with parsing(what), quiet():
        if tensors is not None and (folder / "generation_config.json").exists():
            options["generation_config"] = GenerationConfig.from_pretrained(folder, local_files_only=True)
        model, info = model_class.from_pretrained(
            folder if tensors is None else None,
            config=config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that all of them can be listed
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    misshapen = {name: (tuple(found), tuple(wanted)) for name, found, wanted in info["mismatched_keys"]}
    leftover = {name for name in info["unexpected_keys"] if not _NOT_THE_TARGETS.match(name)}
    report = Report(what)
    report.compare(
        dict.fromkeys(set(info["missing_keys"]) - borrowed, ())
        | {name: wanted for name, (_, wanted) in misshapen.items()},
        dict.fromkeys(leftover, ()) | {name: found for name, (found, _) in misshapen.items()},
    )
    for problem in info["error_msgs"]:
        report.add(str(problem))
    report.raise_if_any()
    refuse_sinks((name for name, _ in model.named_parameters()), config.model_type, what)
    return model


def load_tokenizer(folder: Path, what: str) -> Any:
    """The tokenizer of a checkpoint directory, whichever version wrote it; CheckpointError where there is none."""
    from transformers import AutoTokenizer

    _check_sentencepiece(folder, what)
    with parsing(f"the tokenizer of {what}"), quiet():
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def _check_sentencepiece(folder: Path, what: str) -> None:
    """Say what an older tokenizer (Vicuna's, Llama 2's) needs: transformers asks for a library that would not help."""
    missing = [name for name in ("sentencepiece", "google") if find_spec(name) is None]
    if missing and (folder / "tokenizer.model").exists() and not (folder / "tokenizer.json").exists():
        raise CheckpointError(
            f"the tokenizer of {what} is a sentencepiece file, and this Python cannot read one: "
            "pip install sentencepiece protobuf"
        )


def find_stop_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Union of the generation config's list, the tokenizer's eos and the chat template's end-of-turn token."""
    listed = model.generation_config.eos_token_id
    ids = listed if isinstance(listed, list) else [listed]
    return frozenset(i for i in (*ids, tokenizer.eos_token_id, _end_of_turn(tokenizer)) if isinstance(i, int))


def _end_of_turn(tokenizer: Any) -> int | None:
    """The special token that a chat template writes right after an assistant's turn, if it does."""
    if not tokenizer.chat_template:
        return None
    from jinja2 import TemplateError

    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _TURN_MARK}]
    try:
        _, found, after = tokenizer.apply_chat_template(turns, tokenize=False).rpartition(_TURN_MARK)
    except (TemplateError, TypeError, ValueError):  # a template for other roles; using it will say so
        return None
    ids = tokenizer(after, add_special_tokens=False).input_ids if found else []
    special = tokenizer.added_tokens_decoder.get(ids[0]) if ids else None
    return ids[0] if special is not None and special.special else None
