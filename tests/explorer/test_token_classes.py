"""The class of a token by its text and place, one example a rule, and nothing hostile breaks the reading of labels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.token_classes import CLASS_WORDS, TOKEN_CLASSES, classify, output_classes, repeated, token_text
from explorer.trace import Label
from tests.support.recorded import RECORDED, recorded
from tests.support.traces import make_trace
from tests.support.words import HOSTILE


@pytest.mark.parametrize(
    ("before", "text", "after", "expected"),
    [
        ("def f():", "\n", "", "indentation"),
        ("def f():", "\n    ", "x", "indentation"),
        ("def f():\n", "    ", "x", "indentation"),
        ("def f():\n    ", "    ", "x", "indentation"),
        ("def", " ", "f", "punctuation"),
        ("", " ", "f", "punctuation"),
        ("x = ", "12", "", "digits"),
        ("", " 3.5", " km", "digits"),
        ("f", "):", "", "punctuation"),
        ("", "_", "x", "punctuation"),
        ("my", "_list", " =", "names"),
        ("my_", "list", " =", "names"),
        ("x", "2y", "", "names"),
        ("the Linked", "List", "", "names"),
        ("def", " reverse", "(head)", "names"),
        ("x = self", ".next", " ", "names"),
        (" ", "self", ".next", "names"),
        ("in", " Paris", " today", "names"),
        ("in the", " USA", "", "names"),
        ("It rains. ", "Today", " we", "words"),
        ("", "Today", " we", "words"),
        ("and", " I", " say", "words"),
        ("the", " head", " of", "words"),
        ("the he", "ad", ". It", "words"),
        ("", "", "", "punctuation"),
    ],
)
def test_one_example_a_rule(before: str, text: str, after: str, expected: str) -> None:
    assert classify(text, before + text + after, len(before), is_boilerplate=False) == expected


def test_boilerplate_comes_before_words_and_after_indentation() -> None:
    assert classify("the", "the", 0, is_boilerplate=True) == "boilerplate"
    assert classify("\n", "\n", 0, is_boilerplate=True) == "indentation"


def test_the_fourth_token_of_a_repetition_is_boilerplate() -> None:
    assert repeated([1, 2, 3, 4], [1, 2, 3, 4, 5]) == [False, False, False, True, False]
    assert repeated([], [7, 7, 7, 7, 7]) == [False, False, False, False, True]
    assert repeated([1], []) == []


@pytest.mark.parametrize(
    ("label", "kind", "text"),
    [
        ("␣the", "text", " the"),
        ("␣×8", "space", " " * 8),
        ("↵↵␣×3", "space", "\n\n   "),
        ("‹|im_end|›", "special", ""),
        ("⟨E2 96⟩", "bytes", "\ufffd"),
        ("a⟨U+200B⟩b", "text", "ab"),
        ("␣×99999", "text", " " * 9999 + "9"),
    ],
)
def test_labels_are_read_back(label: str, kind: str, text: str) -> None:
    assert token_text({"3": Label(label, kind)}, 3) == text
    assert token_text({}, 3) == ""


@pytest.mark.parametrize("name", RECORDED)
def test_a_real_output_is_read_back_as_it_was_written(name: str) -> None:
    trace = recorded(name)
    assert "".join(token_text(trace.vocab, token) for token in trace.output.token_ids) == trace.output.text
    assert set(output_classes(trace)) <= set(TOKEN_CLASSES) == CLASS_WORDS.keys()


def test_hostile_labels_are_classified() -> None:
    trace = make_trace(hostile=True)
    assert len(output_classes(trace)) == len(trace.output.token_ids)
    vocab = {key: Label(HOSTILE[int(key) % len(HOSTILE)], "special") for key in trace.vocab}
    assert set(output_classes(replace(trace, vocab=vocab))) == {"boilerplate"}
