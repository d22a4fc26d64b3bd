"""Every kind of file by its name: what it is called, and that it can be made."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from explorer.errors import SettingError
from explorer.takeaway import FORMATS, MAX_NAME, TRACE, Job, pick_step, run_name
from explorer.trace import from_json
from tests.support.traces import make_trace

RUN = make_trace("eagle2", 5, 12, hostile=True)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "png"])
def test_each_kind_is_made_and_named(name: str) -> None:
    kind = FORMATS[name]
    text = kind.make(Job(RUN, 2)).decode()
    assert kind.label and kind.help and kind.media_type
    assert kind.file_name("run", Job(RUN, 2)) == ("run-step2" if kind.is_step else "run") + kind.ending
    if kind.ending.endswith(".json"):
        assert json.loads(text)


def test_the_trace_file_reads_back() -> None:
    assert from_json(TRACE.make(Job(RUN, None)).decode()) == RUN
    assert TRACE.file_name("run", Job(RUN, None)) == "run.json"


def test_a_step_is_the_one_asked_for_or_the_longest_path() -> None:
    assert pick_step(RUN, 3) == 2
    longest = pick_step(RUN, None)
    assert longest is not None
    assert RUN.steps[longest].num_accepted == max(step.num_accepted for step in RUN.steps)
    assert pick_step(make_trace(steps=0), None) is None
    for missing in (0, 6):
        with pytest.raises(SettingError, match="allowed: 1 to 5"):
            pick_step(RUN, missing)


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Write a Python function!", "eagle2-write-a-python-function"),
        ("../../etc/passwd\x00<b>", "eagle2-etc-passwd-b"),
        ("Où est l’été ?", "eagle2-ou-est-lete"),
        ("你好", "eagle2"),
        ("", "eagle2"),
        ("a" * 99, "eagle2-" + "a" * MAX_NAME),
        ("word " * 99, "eagle2-" + "-".join(["word"] * 8)),
    ],
)
def test_a_run_is_called_after_its_prompt(prompt: str, name: str) -> None:
    assert run_name(replace(RUN, prompt=replace(RUN.prompt, text=prompt))) == name


def test_a_name_is_safe_whatever_the_method_says() -> None:
    assert run_name(replace(RUN, method="../<x>", prompt=replace(RUN.prompt, text="a"))) == "x-a"
    assert run_name(replace(RUN, method="…", prompt=replace(RUN.prompt, text=""))) == "run"
