"""Links to what is on screen, in plain query parameters that anybody can write by hand.

A recorded trace is ``?trace=NAME&step=N``, steps counted from 1 (explorer.ui.opening reads it). A visitor's own run is
what was asked for:
``?prompt=...&method=...&target=...&set.NAME=...&temperature=...&seed=...`` and so on (explorer.ui.linked_form reads
it). No link holds the id of a run.
"""

from __future__ import annotations

from urllib.parse import urlencode

from explorer.config import Sampling
from explorer.errors import PromptError
from explorer.runner_events import RunRequest
from explorer.target_presets import TargetPreset
from explorer.trace import SamplingRecord, Trace
from explorer.ui.context import Context
from explorer.ui.controls import setting_text
from explorer.ui.payloads import in_words, read_id, read_number, read_object, to_text

SETTING = "set."
MAX_LINK_CHARS = 6000  # servers and messengers cut longer ones
TOO_LONG = "This prompt is too long for a link: take the trace file."


@in_words
def answer_link(context: Context, payload: object) -> str:
    """``{"query": text after the question mark}`` of a link to ``{"id": trace id, "step": number from 1}``."""
    raw = read_object(payload)
    trace_id, step = read_id(raw.get("id")), read_number(raw.get("step", 1), "step")
    trace, _ = context.store.get(trace_id)
    if trace_id in context.store.library:
        return to_text({"query": urlencode({"trace": trace_id, "step": step})})
    query = urlencode(run_parameters(context, trace, context.store.request(trace_id)))
    if len(query) > MAX_LINK_CHARS:
        raise PromptError(TOO_LONG)
    return to_text({"query": query})


def run_parameters(context: Context, trace: Trace, request: RunRequest | None) -> dict[str, str]:
    """The parameters of a link that asks for this run again; without a request, as far as the record says."""
    known = {item.setting.name for item in context.fields if item.method == trace.method}
    found = {
        "prompt": trace.prompt.text,
        "system": request.system if request else None,
        "method": trace.method,
        **_places(context, trace, request),
        "max_new_tokens": str(_num_tokens(context, trace, request)),
        "adaptive": "true" if request and request.is_adaptive else None,
        **_sampling(trace.sampling),
        **{f"{SETTING}{name}": setting_text(value) for name, value in trace.settings.items() if name in known},
    }
    return {name: text for name, text in found.items() if text}


def _num_tokens(context: Context, trace: Trace, request: RunRequest | None) -> int:
    """The limit of the run; a record without a request tells it only where the run came up to it."""
    if request is not None:
        return request.max_new_tokens
    count = len(trace.output.token_ids)
    return min(
        count if trace.stop == "max_new_tokens" else max(count, context.first_count), context.options.max_new_tokens
    )


def _sampling(sampling: SamplingRecord) -> dict[str, str | None]:
    """Temperature and seed, and what else is not as it is anyway."""
    plain = Sampling(sampling.temperature)
    found = {name: setting_text(getattr(sampling, name)) for name in ("temperature", "seed")}
    changed = [name for name in ("top_p", "top_k") if getattr(sampling, name) != getattr(plain, name)]
    found |= {name: setting_text(getattr(sampling, name)) for name in changed}
    return found if sampling.acceptance == plain.rule else found | {"acceptance": sampling.acceptance}


def _places(context: Context, trace: Trace, request: RunRequest | None) -> dict[str, str | None]:
    target = _target_of(context, trace, request)
    return {"target": target.name, "drafter": _drafter_of(context, target, trace, request)} if target else {}


def _target_of(context: Context, trace: Trace, request: RunRequest | None) -> TargetPreset | None:
    """The offered target that the run had; a record only knows the name of its weights."""
    for target in context.options.targets:
        names = (target.source,) if request else (target.name, target.label, target.source)
        if (request.target if request else _original_name(trace)) in names:
            return target
    return None


def _original_name(trace: Trace) -> str:
    """Of the target, without what a drafter adapted."""
    return trace.target.adapter.original if trace.target.adapter else trace.target.name


def _drafter_of(context: Context, target: TargetPreset, trace: Trace, request: RunRequest | None) -> str | None:
    for choice in context.options.drafters(target, trace.method):
        if (choice.source == request.drafter) if request else (trace.drafter and choice.name == trace.drafter.name):
            return choice.name
    return None
