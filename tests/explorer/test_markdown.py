"""Text of unknown make stays text in Markdown."""

from __future__ import annotations

import pytest

from explorer.markdown import escape, sentence, table
from tests.support.words import HOSTILE


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_hostile_is_left(text: str) -> None:
    shown = escape(text)
    assert "<" not in shown and "\n" not in shown and "\0" not in shown and "\u202e" not in shown
    assert len(table(["a", "b"], [[text, "x"]])[2].replace("\\|", "").split("|")) == 4


def test_marks_are_escaped_and_names_stay_readable() -> None:
    assert escape("a|b*c_[d](e)`") == "a\\|b\\*c\\_\\[d\\](e)\\`"
    assert sentence("total_tokens 12 and _x_") == "total_tokens 12 and \\_x\\_"
