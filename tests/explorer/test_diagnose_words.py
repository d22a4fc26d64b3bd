"""Tables of a diagnosis: every row as wide as its head, long texts cut, bars as long as their share."""

from __future__ import annotations

from explorer.diagnose import Subject, diagnose
from explorer.diagnose_words import BAR, NUM_BEST, NUM_WORST, bar, method_tables, overview, ranking
from tests.support.recorded import recorded
from tests.support.traces import make_trace

FOUND = diagnose([Subject(recorded("eagle2-code"), "a.json"), Subject(recorded("medusa-chat"))])


def test_every_row_fits_its_head() -> None:
    tables = [overview(FOUND), *ranking(FOUND), *(table for item in FOUND.methods for table in method_tables(item))]
    assert len(tables) == 3 + 6 + 6
    assert all(table.rows and len(row) == len(table.head) for table in tables for row in table.rows)


def test_only_the_worst_and_the_best_text_is_shown() -> None:
    _, spans = ranking(FOUND)
    assert len(spans.rows) == NUM_WORST + NUM_BEST < len(FOUND.spans)


def test_a_prompt_says_where_its_worst_pass_is() -> None:
    prompts, _ = ranking(FOUND)
    steps = [(each.worst_step or 0) + 1 for each in FOUND.prompts]  # counted from 1, as on the page
    places = [row[-1] for row in prompts.rows]
    assert places[0].startswith(f"run 2, step {steps[0]}: ") and places[1].startswith(f"a.json, step {steps[1]}: ")


def test_bars() -> None:
    assert bar(1.0, 0.0) == "·" * (BAR - 1) + "|"
    assert bar(0.0, 1.0) == "|" + "█" * (BAR - 1)


def test_guesses_have_no_calibration() -> None:
    (method,) = diagnose([Subject(make_trace("prompt_lookup"))]).methods
    assert not [table for table in method_tables(method) if table.title.startswith("Confidence")]


def test_columns_named_otherwise_than_the_endings_are_explained() -> None:
    kinds = next(table for table in method_tables(FOUND.methods[0]) if table.title == "By kind of token")
    assert "outranked" in kinds.head
    for name in ("outranked", "tree ended"):
        assert f"{name} is " in kinds.note
