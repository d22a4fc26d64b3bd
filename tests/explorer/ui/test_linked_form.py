"""A link fills the form or says why not; it may have been written by anybody."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from explorer.ui.context import Context
from explorer.ui.controls import COMMON, SAMPLING
from explorer.ui.linked_form import FILLED, MAX_PARAMETERS, REFUSED, Filled, fill_form, fill_from_run
from explorer.ui.screen import KEEP
from tests.support.traces import make_trace


def fill(context: Context, **query: str) -> Filled:
    request: Any = SimpleNamespace(query_params=query)
    return fill_form(context, request)


def said(filled: Filled) -> str:
    assert filled.status is not None
    text: str = json.loads(filled.status)["text"]
    return text


def values(context: Context, filled: Filled) -> dict[str, Any]:
    """What the controls are set to, by name; those that stay are left out."""
    names = [*COMMON, "preset", *(f"sampling.{item.name}" for item in SAMPLING)]
    names += [item.name for item in context.fields]
    found = zip(names, filled.controls, strict=False)
    return {name: update["value"] for name, update in found if update != KEEP}


def test_a_link_fills_every_part_of_the_form(context: Context) -> None:
    query = {"prompt": "Say hello", "method": "medusa", "target": "large", "system": "Be brief", "max_new_tokens": "17"}
    sampling = {"temperature": "0.7", "top_p": "0.9", "top_k": "5", "seed": "3", "acceptance": "typical"}
    filled = fill(context, **query, **sampling, **{"set.total_tokens": "9"})
    found = values(context, filled)
    assert said(filled) == FILLED
    assert (found["prompt"], found["method"], found["target"], found["drafter"]) == (
        "Say hello",
        "medusa",
        "large",
        "a/b",
    )
    assert (found["system"], found["max_new_tokens"], found["medusa.total_tokens"]) == ("Be brief", 17, 9)
    assert [found[f"sampling.{name}"] for name in sampling] == [0.7, 0.9, 5, 3, "typical"]
    shown = [form.name for form in context.forms if form.settings]
    groups = filled.controls[-len(shown) :]
    assert [name for name, update in zip(shown, groups, strict=True) if update["visible"]] == ["medusa"]


def test_what_a_link_leaves_out_stands_at_its_default(context: Context) -> None:
    found = values(context, fill(context, seed="3"))
    assert "prompt" not in found, "the prompt on the page stays"
    assert (found["method"], found["target"], found["preset"], found["max_new_tokens"]) == (
        "eagle2",
        "tiny",
        "small",
        64,
    )
    assert (found["eagle2.total_tokens"], found["sampling.temperature"]) == (8, 0.0)
    assert found["sampling.acceptance"] == ""


def test_an_address_without_a_run_changes_nothing(context: Context) -> None:
    for query in ({}, {"trace": "eagle2-code", "step": "3"}, {"__theme": "dark"}):
        filled = fill(context, **query)
        assert filled.status is None
        assert all(update == KEEP for update in filled.controls)


def test_a_value_beyond_its_bounds_is_told(context: Context) -> None:
    filled = fill(context, **{"set.depth": "99"})
    assert values(context, filled)["eagle2.depth"] == 32
    assert "Note: depth must be at most 32, not 99: 32 is used." in said(filled)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"prompt": " "}, "The prompt is empty"),
        ({"prompt": "x" * 501}, "takes at most 500"),
        ({"method": "magic"}, "unknown method 'magic'"),
        ({"method": "medusa"}, "Tiny target has no Medusa drafter here"),
        ({"target": "/etc/passwd"}, "this server does not offer the target '/etc/passwd'"),
        ({"drafter": "../x"}, "does not offer the drafter '../x'"),
        ({"max_new_tokens": "65"}, "from 1 to 64, not 65"),
        ({"max_new_tokens": "1e3"}, "from 1 to 64, not 1e3"),
        ({"max_new_tokens": "9" * 5000}, "from 1 to 64"),
        ({"temperature": "hot"}, "temperature must be"),
        ({"temperature": "0.5", "acceptance": "greedy"}, "set temperature 0, or choose rejection"),
        ({"seed": "one"}, "seed must be"),
        ({"set.magic": "1"}, "unknown setting 'magic'"),
        ({"set.": "1"}, "unknown setting ''"),
        ({"set.depth": "deep"}, "depth must be a whole number"),
        ({"set." + "x" * 99: "1"}, "very long name"),
        ({f"set.x{i}": "1" for i in range(MAX_PARAMETERS + 1)}, f"more than {MAX_PARAMETERS} parameters"),
    ],
)
def test_what_is_not_allowed_is_one_sentence_and_the_form_stays(
    context: Context, query: dict[str, str], told: str
) -> None:
    filled = fill(context, **query)
    assert said(filled).startswith(REFUSED)
    assert told in said(filled)
    assert len(said(filled)) < 400
    assert all(update == KEEP for update in filled.controls)


def test_random_links_are_answered_too(context: Context) -> None:
    rng = random.Random(0)
    names = [*COMMON, *(item.name for item in SAMPLING), "set.depth", "set.total_tokens", "set.tree", "trace", "set"]
    texts = ["", "0", "-1", "1e999", "nan", "auto", "tiny", "eagle2", "\x00", "<script>", "\u202e", "9" * 40, "true"]
    for _ in range(300):
        query = {rng.choice(names): rng.choice(texts) for _ in range(rng.randrange(6))}
        filled = fill(context, **query)
        assert len(filled.controls) == len(fill(context).controls)


def test_a_run_on_screen_fills_the_form_with_what_made_it(context: Context) -> None:
    found = values(context, fill_from_run(context, "eagle2-code"))
    trace = context.store.get("eagle2-code")[0]
    assert (found["prompt"], found["method"]) == (trace.prompt.text, "eagle2")
    assert found["eagle2.total_tokens"] == trace.settings["total_tokens"]
    assert found["sampling.temperature"] == trace.sampling.temperature
    unknown = fill_from_run(context, "nothing")
    assert unknown.status is None
    assert all(update == KEEP for update in unknown.controls)


def test_a_file_that_cannot_be_made_here_still_brings_its_prompt(context: Context) -> None:
    trace = make_trace("eagle2", 2, 8)
    strange = replace(trace, method="strange", prompt=replace(trace.prompt, text="Its own prompt"))
    found = values(context, fill_from_run(context, context.store.open(strange, is_done=True)))
    assert found == {"prompt": "Its own prompt"}
    ids = replace(trace, prompt=replace(trace.prompt, text=""))
    found = values(context, fill_from_run(context, context.store.open(ids, is_done=True)))
    assert found["prompt"] == "", "not that of the run before"
