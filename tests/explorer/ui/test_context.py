"""What a browser sends is checked against what the operator allows, whatever the page offered it."""

from __future__ import annotations

import pytest

from explorer.errors import PromptError, SettingError
from explorer.methods.registry import METHODS
from explorer.ui.context import MAX_SETTING_CHARS, Context
from tests.support.page import form_values


def test_the_form_becomes_checked_choices(context: Context) -> None:
    choices = context.choices(form_values(context, system="  ", max_new_tokens=7.9))
    assert (choices.method.name, choices.target.name) == ("eagle2", "tiny")
    assert choices.system is None
    assert choices.max_new_tokens == 7
    assert set(choices.settings) == {"total_tokens", "depth", "top_k"}


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
