"""Links to what is on screen: a recorded step by its name, a run by what was asked for, never by its id."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

from explorer.adapter_words import AdapterRecord
from explorer.config import Sampling
from explorer.runner_events import RunRequest
from explorer.trace import Trace
from explorer.ui.context import Context
from explorer.ui.links import TOO_LONG, answer_link
from tests.support.page import LARGE, TINY
from tests.support.traces import make_trace


def link_of(context: Context, trace_id: str, step: int = 0) -> dict[str, str]:
    reply = json.loads(answer_link(context, json.dumps({"id": trace_id, "step": step})))
    if "error" in reply:
        return reply
    return {name: values[0] for name, values in parse_qs(reply["query"], strict_parsing=True).items()}


def keep(context: Context, request: RunRequest | None = None, **changes: Any) -> tuple[str, Trace]:
    trace = replace(make_trace("eagle2", 2, 8), settings={"total_tokens": 8, "depth": 2, "top_k": 2}, **changes)
    return context.store.open(trace, is_done=True, request=request), trace


def test_a_recorded_step_is_linked_by_name(context: Context) -> None:
    assert link_of(context, "eagle2-code", 7) == {"trace": "eagle2-code", "step": "7"}


def test_a_run_is_linked_by_what_was_asked_for(context: Context) -> None:
    request = RunRequest(
        "eagle2",
        prompt="Say <hello> & 100 %",
        system="Be brief.",
        max_new_tokens=33,
        sampling=Sampling(0.7, top_p=0.9, seed=3),
        target=TINY.source,
        drafter="/nowhere/eagle",
        is_adaptive=True,
    )
    run_id, trace = keep(context, request)
    sampled = replace(trace.sampling, temperature=0.7, top_p=0.9, seed=3, acceptance="rejection")
    context.store.finish(
        run_id, replace(trace, sampling=sampled, prompt=replace(trace.prompt, text="Say <hello> & 100 %"))
    )
    found = link_of(context, run_id)
    assert found == {
        "prompt": "Say <hello> & 100 %",
        "system": "Be brief.",
        "method": "eagle2",
        "target": "tiny",
        "drafter": "/nowhere/eagle",
        "max_new_tokens": "33",
        "adaptive": "true",
        "temperature": "0.7",
        "seed": "3",
        "top_p": "0.9",
        "set.total_tokens": "8",
        "set.depth": "2",
        "set.top_k": "2",
    }
    assert run_id not in json.dumps(found)


def test_a_file_is_linked_as_far_as_its_record_says(context: Context) -> None:
    run_id, trace = keep(context, stop="max_new_tokens")
    found = link_of(context, run_id)
    assert found["max_new_tokens"] == str(len(trace.output.token_ids))
    assert not {"target", "drafter", "system", "acceptance"} & found.keys(), "its target is not offered here"
    run_id, trace = keep(context, target=replace(make_trace().target, name=LARGE.label), stop="eos")
    found = link_of(context, run_id)
    assert found["target"] == "large"
    assert found["max_new_tokens"] == "64", "the end came by itself: the page's own limit"


def test_an_unusual_rule_is_named(context: Context) -> None:
    run_id, trace = keep(context)
    typical = replace(trace.sampling, temperature=0.7, acceptance="typical")
    context.store.finish(run_id, replace(trace, sampling=typical))
    assert link_of(context, run_id)["acceptance"] == "typical"


def test_settings_that_the_form_does_not_have_stay_out(context: Context) -> None:
    run_id, trace = keep(context)
    context.store.finish(run_id, replace(trace, settings={"total_tokens": 8, "other": 1, "depth": None}))
    assert [name for name in link_of(context, run_id) if name.startswith("set.")] == ["set.total_tokens"]


def test_a_prompt_may_be_too_long_for_a_link(context: Context) -> None:
    run_id, trace = keep(context)
    context.store.finish(run_id, replace(trace, prompt=replace(trace.prompt, text="long " * 2000)))
    assert link_of(context, run_id) == {"error": TOO_LONG}


def test_an_unknown_run_has_no_link(context: Context) -> None:
    assert "no longer kept" in link_of(context, "nobody")["error"]
    assert "id of a trace" in json.loads(answer_link(context, "{}"))["error"]


def test_a_run_of_an_adapted_target_is_linked_by_the_original(context: Context) -> None:
    adapter = AdapterRecord("medusa2", LARGE.label, 1, 0.1, 0.9, 10)
    run_id, _ = keep(context, target=replace(make_trace().target, name="another name", adapter=adapter))
    assert link_of(context, run_id)["target"] == "large"
