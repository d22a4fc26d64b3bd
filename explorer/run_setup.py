"""From a request to everything one run needs: checked options, loaded models, resolved settings, the prompt's ids."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from explorer.adapter_words import adapter_sentence
from explorer.checkpoints.placement import choose_device
from explorer.config import AUTO, describe, resolve
from explorer.cost import has_auto, settle
from explorer.cost_words import prediction_sentence
from explorer.engine import DecodeOptions
from explorer.errors import PromptError, SettingError
from explorer.loading import LoadedModels, ModelStore, check_placement, drafter_source, method_class
from explorer.methods.base import Method, check_acceptance
from explorer.methods.registry import METHODS
from explorer.prediction import TOTAL_TOKENS
from explorer.runner_events import Notice, RunRequest, Status
from explorer.target_presets import TargetPreset
from explorer.text import prompt_from_ids, render_prompt
from explorer.trace import DrafterRecord, PromptRecord


@dataclass(frozen=True)
class Run:
    """A request with everything it needs at hand. settings: the resolved values, as the record keeps them."""

    request: RunRequest
    options: DecodeOptions
    models: LoadedModels
    method: Method
    drafter: DrafterRecord | None
    settings: dict[str, Any]
    prompt: PromptRecord


def check_request(request: RunRequest) -> DecodeOptions:
    """Refuse what can be refused before a model is loaded."""
    check_acceptance(method_class(request), request.sampling)
    given = [name for name in ("prompt", "messages", "prompt_ids") if getattr(request, name) is not None]
    if len(given) != 1:
        raise PromptError(f"give exactly one of prompt, messages and prompt ids, not {' and '.join(given) or 'none'}")
    if request.prompt is not None and not request.prompt.strip():
        raise PromptError("the prompt is empty: write something")
    if request.prompt_ids is not None and request.system:
        raise PromptError("prompt ids are read as they are: leave the system prompt out")
    if not isinstance(request.max_new_tokens, int) or isinstance(request.max_new_tokens, bool):
        raise SettingError(f"max_new_tokens must be a whole number, not {request.max_new_tokens!r}")
    kind = method_class(request)
    if request.is_adaptive and not kind.can_rest:
        able = ", ".join(name for name, each in METHODS.items() if each.can_rest)
        raise SettingError(f"{request.method} drafts at every step: adaptive runs are for {able}")
    check_placement(request)
    choose_device(request.device)
    return DecodeOptions(request.max_new_tokens, request.sampling, request.ignore_stop, request.cache)


def prepare_run(
    request: RunRequest, options: DecodeOptions, store: ModelStore
) -> Generator[Status | Notice, None, Run]:
    """Load and resolve; yields what happens meanwhile, returns the run. Raises ExplorerError subclasses."""
    preset = store.preset(request)
    source = drafter_source(request, preset)
    settings, notices = _resolve_settings(request, preset, choose_device(request.device).type)
    models = yield from store.models(request)
    prompt = _prompt(request, models)
    drafter = None
    if source is not None:
        yield Status("loading the drafter")
        drafter = models.drafter(request.method, source)
    module, record, doubt = drafter[:3] if drafter else (None, None, None)
    if source is not None and has_auto(settings):
        settings, chosen = yield from settle(settings, models, method_class(request), source)
        notices.append(f"auto: {prediction_sentence(chosen)}")
    method = method_class(request)(models.target, module, settings)
    is_lossless = request.sampling.rule != "typical"
    adapted = [adapter_sentence(models.adapter, is_lossless)] if models.adapter else []
    launched = [f"passes are launched one by one: {models.target.why_eager}"] if models.target.why_eager else []
    said = [*notices, *adapted, *launched, *method.notices, *_context_notice(request, method, len(prompt.token_ids))]
    for notice in [*said, *([doubt] if doubt else [])]:
        yield Notice(notice)
    return Run(request, options, models, method, record, dataclasses.asdict(method.settings), prompt)


def _context_notice(request: RunRequest, method: Method, num_prompt: int) -> list[str]:
    """What to expect where a run may go beyond the positions that its drafter was trained on."""
    trained = method.trained_context
    reached = min(num_prompt + request.max_new_tokens, method.target.context_limit)
    if trained is None or reached <= trained:
        return []
    return [f"the drafter was trained on {trained} tokens, this run may reach {reached}: beyond, it guesses worse"]


def _resolve_settings(request: RunRequest, preset: TargetPreset, device_type: str) -> tuple[Any, list[str]]:
    """The method's own defaults, under the preset's values, under the request's; ``preset`` among those names one."""
    values = dict(request.settings)
    named = values.pop("preset", None) or request.preset
    defaults = preset.method_settings(request.method, device_type, None if named is None else str(named))
    kind = method_class(request).Settings
    if values.get(TOTAL_TOKENS) == AUTO:  # the best tree of all, unless its other settings are asked for as well
        defaults |= {item.name: AUTO for item in describe(kind) if item.allow_auto}
    return resolve(kind, defaults | values)


def _prompt(request: RunRequest, models: LoadedModels) -> PromptRecord:
    prompt = _rendered(request, models)
    size, limit = len(prompt.token_ids), request.max_prompt_tokens
    if limit is not None and size > limit:
        raise PromptError(f"the prompt has {size:,} tokens; this server takes at most {limit:,}: shorten it")
    return prompt


def _rendered(request: RunRequest, models: LoadedModels) -> PromptRecord:
    tokenizer = models.target.tokenizer
    if request.prompt_ids is not None:
        return prompt_from_ids(tokenizer, request.prompt_ids, models.target.vocab_size)
    content = request.prompt if request.prompt is not None else request.messages
    assert content is not None
    return render_prompt(tokenizer, content, request.system, request.use_chat_template)
