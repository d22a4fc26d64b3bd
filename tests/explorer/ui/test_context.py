"""What a browser sends is checked against what the operator allows, whatever the page offered it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from explorer.config import Sampling
from explorer.errors import PromptError, SettingError
from explorer.methods.registry import METHODS
from explorer.ui.context import MAX_SETTING_CHARS, Context, on_one_target
from tests.support.medusa2_files import write_medusa2
from tests.support.page import form_values


def test_the_form_becomes_checked_choices(context: Context) -> None:
    choices = context.choices(form_values(context, system="  ", max_new_tokens=7.9))
    assert (choices.method.name, choices.target.name) == ("eagle2", "tiny")
    assert choices.system is None
    assert choices.max_new_tokens == 7
    assert set(choices.settings) == {"total_tokens", "depth", "top_k"}


def test_sampling_comes_with_the_choices(context: Context) -> None:
    assert context.choices(form_values(context)).sampling == Sampling()
    given = {"temperature": 0.7, "top_p": 0.9, "top_k": 40.0, "seed": 5, "acceptance": "rejection"}
    values = form_values(context, **{f"sampling.{name}": value for name, value in given.items()})
    assert context.choices(values).sampling == Sampling(0.7, 0.9, 40, 5, "rejection")
    emptied = form_values(context, **{"sampling.temperature": 0.5, "sampling.seed": None, "sampling.acceptance": ""})
    assert context.choices(emptied).sampling == Sampling(0.5)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"acceptance": "hope"}, "one of greedy, rejection, typical"),
        ({"acceptance": "typical"}, "temperature above 0"),
        ({"temperature": 0.5, "acceptance": "greedy"}, "choose rejection"),
        ({"temperature": "warm"}, "temperature must be a number"),
        ({"seed": [1]}, "seed must be a whole number"),
    ],
)
def test_sampling_that_makes_no_sense_is_refused(context: Context, changes: dict[str, object], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        context.choices(form_values(context, **{f"sampling.{name}": value for name, value in changes.items()}))


def test_the_drafter_is_one_that_is_offered(context: Context) -> None:
    assert context.choices(form_values(context)).drafter == "/nowhere/eagle"
    assert context.choices(form_values(context, drafter="/nowhere/eagle")).drafter == "/nowhere/eagle"
    assert context.choices(form_values(context, method="autoregressive")).drafter is None
    with pytest.raises(SettingError, match="does not offer the drafter"):
        context.choices(form_values(context, drafter="someone/else"))


def test_a_prompt_keeps_its_own_white_space(context: Context) -> None:
    assert context.choices(form_values(context, prompt="  def f():\n")).prompt == "  def f():\n"


def test_mistakes_say_what_is_allowed(context: Context) -> None:
    with pytest.raises(PromptError, match="pick an example"):
        context.choices(form_values(context, prompt=""))
    with pytest.raises(SettingError, match="tiny, large"):
        context.choices(form_values(context, target="other"))
    with pytest.raises(SettingError, match=f"allowed: {', '.join(METHODS)}"):
        context.choices(form_values(context, method="other"))


def test_a_setting_of_any_length_stays_short(context: Context) -> None:
    choices = context.choices(form_values(context, **{"eagle2.depth": "9" * 10_000}))
    assert len(choices.settings["depth"]) == MAX_SETTING_CHARS


def test_compared_runs_share_the_target_that_one_of_them_adapts(context: Context, tmp_path: Path) -> None:
    asked = [context.choices(form_values(context, method=name)) for name in ("eagle2", "jacobi")]
    assert on_one_target(asked) == asked
    source = str(write_medusa2(tmp_path))
    shared = on_one_target([*asked, replace(asked[0], drafter=source)])
    assert [each.request().adapter for each in shared] == [source] * 3
