"""Draft models: any small causal LM that speaks the target's tokens, whole or without embedding and LM head.

A whole one is an ordinary checkpoint directory with its own tokenizer, which must be the target's. Our own recipe
(explorer.training.draft_model) leaves out embedding and LM head: its config.json says ``"embedding_shared": true``,
and both are the target's, so that no tokenizer can differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, Protocol

from explorer.checkpoints.drafter import TargetFacts, name_of
from explorer.checkpoints.files import Report, is_quantized, locate, parsing, read_config, read_tensors, weight_files
from explorer.checkpoints.target import embedding_names, load_model, load_tokenizer, read_model_config
from explorer.trace import DrafterRecord

SHARED = "embedding_shared"
_NUM_SHOWN = 3  # differing tokens that a refusal names


class DraftedTarget(TargetFacts, Protocol):
    """The part of a target that a draft model has to fit; explorer.target.Target has it."""

    @property
    def tokenizer(self) -> Any: ...
    @property
    def backend(self) -> str: ...


class LoadedDraftModel(NamedTuple):
    """A transformers causal LM on the target's device, in its dtype, running our attention.

    record counts what is the draft model's own; shares_embedding: embedding and LM head are the target's layers.
    """

    model: Any
    record: DrafterRecord
    shares_embedding: bool


def load_draft_model(source: str, target: DraftedTarget) -> LoadedDraftModel:
    """Load ``source``, a directory or a hub id, strictly; CheckpointError lists what does not fit the target."""
    from explorer.models.attention import register_tree_attention

    folder, what = locate(source, "draft model"), f"draft model {name_of(source)!r}"
    shares_embedding = read_config(folder).get(SHARED, False)
    report = Report(what, target.name)
    if not isinstance(shares_embedding, bool):
        report.add(f"config.json: {SHARED} must be true or false, found {shares_embedding!r}")
        report.raise_if_any()
    config = read_model_config(folder, what, shares_embedding)
    borrowed = embedding_names(config) if shares_embedding else frozenset[str]()
    if shares_embedding:
        _check_shared(folder, config, borrowed, target, report)
    else:
        _check_tokenizer(load_tokenizer(folder, what), config.get_text_config().vocab_size, target, report)
    report.raise_if_any()
    attention = register_tree_attention(target.backend, target.device)
    options = {"dtype": target.dtype, "attn_implementation": attention}
    paths = weight_files(folder)
    tensors = read_tensors(paths) if is_quantized(paths) else None
    model = load_model(folder, config, options, borrowed, tensors)
    if shares_embedding:
        model.set_input_embeddings(target.embed_tokens)
        model.set_output_embeddings(target.lm_head)
    with parsing(what):
        model = model.to(target.device).eval().requires_grad_(False)
    own = [parameter for name, parameter in model.named_parameters() if name not in borrowed]
    sizes = [parameter.numel() for parameter in own]
    num_bytes = sum(parameter.numel() * parameter.element_size() for parameter in own)
    return LoadedDraftModel(model, DrafterRecord(name_of(source), sum(sizes), num_bytes), shares_embedding)


def _check_shared(folder: Path, config: Any, borrowed: frozenset[str], target: DraftedTarget, report: Report) -> None:
    """What borrows the target's embedding has its sizes and does not bring one."""
    text_config = config.get_text_config()
    report.require_equal("hidden size", text_config.hidden_size, target.hidden_size)
    report.require_equal("vocabulary", text_config.vocab_size, target.vocab_size)
    for name in read_tensors(weight_files(folder), wanted=borrowed.__contains__):
        report.add(f"{name} is stored, though config.json says {SHARED}")


def _check_tokenizer(own: Any, vocab_size: int, target: DraftedTarget, report: Report) -> None:
    """Same ids, same tokens. The models' vocabularies may differ by padding, ids that no tokenizer gives."""
    ours, theirs = _tokens_by_id(own, vocab_size), _tokens_by_id(target.tokenizer, target.vocab_size)
    different = sorted(token_id for token_id in ours.keys() | theirs if ours.get(token_id) != theirs.get(token_id))
    if different:
        shown = [f"{i} is {_show(ours.get(i))}, not {_show(theirs.get(i))}" for i in different[:_NUM_SHOWN]]
        more = ", ..." if len(different) > _NUM_SHOWN else ""
        report.add(f"its tokenizer is not the target's: {len(different)} ids differ ({', '.join(shown)}{more})")


def _tokens_by_id(tokenizer: Any, vocab_size: int) -> dict[int, str]:
    """What the model can read: tokens a tokenizer has beyond the model's vocabulary are never its output."""
    return {token_id: token for token, token_id in tokenizer.get_vocab().items() if token_id < vocab_size}


def _show(token: str | None) -> str:
    return "missing" if token is None else ascii(token[:20])  # a foreign token: nothing of it reaches the terminal raw
