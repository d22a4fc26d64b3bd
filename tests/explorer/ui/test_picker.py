"""The list of runs: a visitor's own stands below the recorded ones, under a name."""

from __future__ import annotations

from dataclasses import replace

from explorer.ui.context import Context
from explorer.ui.picker import YOUR_FILE, own_choice, recorded_choices
from tests.support.traces import make_trace


def test_an_own_run_is_listed_and_picked(context: Context) -> None:
    trace = make_trace("medusa", 2, 8)
    trace = replace(trace, prompt=replace(trace.prompt, text="Say\n\u202ehello " + "x" * 100))
    update = own_choice(context, "some-id", trace, interactive=False)
    assert update["value"] == "some-id"
    assert update["interactive"] is False
    *recorded, (title, value) = update["choices"]
    assert recorded == recorded_choices(context)
    assert [name for _, name in recorded] == [item.name for item in context.store.library]
    assert value == "some-id"
    assert title.startswith("Your run: Medusa · Say ⟨U+202E⟩hello xxx")
    assert len(title) < 80


def test_a_run_without_a_prompt_has_the_name_of_its_method(context: Context) -> None:
    trace = make_trace("eagle2", 2, 8)
    trace = replace(trace, method="strange", prompt=replace(trace.prompt, text=""))
    assert own_choice(context, "id", trace, YOUR_FILE)["choices"][-1] == ("Your file: strange", "id")
