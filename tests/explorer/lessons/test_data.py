"""The lessons as written: each names recordings, rules and figures that exist, all of these are used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.config import repo_path
from explorer.errors import TraceError
from explorer.lessons import data
from explorer.lessons.data import Stop, load_lessons
from explorer.lessons.figures import FIGURES, PLACEHOLDER
from explorer.lessons.lab_figures import LAB_FIGURES
from explorer.lessons.steps import NODE_RULES, STEP_RULES
from tests.support.recorded import RECORDED

STOPS = [(f"{i + 1}.{j + 1}", stop) for i, each in enumerate(load_lessons()) for j, stop in enumerate(each.stops)]
SUBJECTS = ("Draft", "Medusa", "EAGLE", "mask", "Lossless", "report", "loses", "Claims")


def texts(stop: Stop) -> list[str]:
    """Everything of a stop that may hold placeholders."""
    cells = [*stop.table.head, *(cell for row in stop.table.rows for cell in row)] if stop.table else []
    return [stop.text, *stop.formula, *cells]


def test_every_subject_has_its_lesson_in_order() -> None:
    assert len(load_lessons()) == len(SUBJECTS)
    for lesson, subject in zip(load_lessons(), SUBJECTS, strict=True):
        assert subject in lesson.title
        assert 4 <= len(lesson.stops) <= 9
        titles = [stop.title for stop in lesson.stops]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("name", "stop"), STOPS, ids=[name for name, _ in STOPS])
def test_a_stop_is_written_as_it_must_be(name: str, stop: Stop) -> None:
    assert stop.trace in RECORDED
    assert set(stop.others) <= set(RECORDED)
    assert stop.step in STEP_RULES
    assert stop.pin in ("", *NODE_RULES)
    assert stop.order in ("tree", "engine")
    assert stop.look, "something on the screen is pointed at"
    assert stop.todo.endswith("."), "one thing to do, in a sentence"
    assert stop.todo.count(".") <= 2
    assert stop.formula
    assert not PLACEHOLDER.search(stop.todo)
    if stop.table:
        assert {len(row) for row in stop.table.rows} == {len(stop.table.head)}


def test_every_rule_and_every_figure_is_used_and_known() -> None:
    stops = [stop for _, stop in STOPS]
    used = [match for stop in stops for text in texts(stop) for match in PLACEHOLDER.finditer(text)]
    assert {match[1] for match in used} == {*FIGURES, *LAB_FIGURES}
    assert {match[2] for match in used} - {None} <= set(RECORDED)
    assert {stop.step for stop in stops} == set(STEP_RULES)
    assert {stop.pin for stop in stops} == {"", *NODE_RULES}


def test_no_measured_figure_is_typed_by_hand() -> None:
    """A decimal number in a text is a published constant or nothing."""
    published = {"1.48", "0.09", "0.3"}
    for name, stop in STOPS:
        for text in texts(stop):
            bare = PLACEHOLDER.sub("", text)
            numbers = {
                word.strip(".,;:“”") for word in bare.split() if any(c.isdigit() for c in word) and "." in word[:-1]
            }
            assert numbers <= published, (name, numbers)


def test_the_published_size_is_right() -> None:
    assert f"{5 * (4096**2 + 32000 * 4096) * 2 / 1e9:.2f}" == "1.48"


def test_a_broken_file_is_an_error_that_names_the_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(repo_path("assets", "lessons.json").read_text(encoding="utf-8"))
    del whole[2]["stops"][1]["todo"]
    (tmp_path / "lessons.json").write_text(json.dumps(whole), encoding="utf-8")
    monkeypatch.setattr(data, "repo_path", lambda *_: tmp_path / "lessons.json")
    with pytest.raises(TraceError, match=r"lessons.*todo"):
        load_lessons.__wrapped__()
    (tmp_path / "lessons.json").write_text("{", encoding="utf-8")
    with pytest.raises(TraceError, match="cannot be read"):
        load_lessons.__wrapped__()
