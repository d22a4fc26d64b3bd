"""Labels are measured and cut where a reader would: never inside a letter with its marks."""

import pytest

from explorer.export.labels import clusters, num_cells, shorten

FAMILY = "👩\u200d👩\u200d👧\u200d👦"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("abc", ["a", "b", "c"]),
        ("e\u0301\u0301x", ["e\u0301\u0301", "x"]),
        (f"a{FAMILY}b", ["a", FAMILY, "b"]),
        ("👍🏽!", ["👍🏽", "!"]),
        ("🇫🇷🇩🇪", ["🇫🇷", "🇩🇪"]),
        ("❤\ufe0f", ["❤\ufe0f"]),
        ("\u0301a", ["\u0301", "a"]),
    ],
)
def test_clusters_are_what_a_reader_calls_a_letter(text, expected):
    assert clusters(text) == expected


@pytest.mark.parametrize(
    ("text", "cells"),
    [("␣the", 4), ("日本", 4), (FAMILY, 2), ("🇫🇷", 2), ("e\u0301", 1), ("❤\ufe0f", 2), ("שלום", 4)],
)
def test_wide_letters_count_two(text, cells):
    assert num_cells(text) == cells


def test_what_fits_stays_whole():
    assert shorten("exactly ten", 11) == "exactly ten"
    assert shorten("日本語", 6) == "日本語"


@pytest.mark.parametrize("text", ["x" * 40, "日本語" * 9, "e\u0301" * 30, FAMILY * 12, "A" * 2048, "שלום" * 9])
def test_long_labels_are_cut_in_the_middle(text):
    cut = shorten(text, 18)
    head, tail = cut.split("…")
    assert text.startswith(head) and text.endswith(tail) and head and tail
    assert 16 <= num_cells(cut) <= 18
    assert set(clusters(head)) | set(clusters(tail)) <= set(clusters(text))


def test_an_endless_label_is_cut_at_once():
    assert shorten("a" * 10**7 + "z", 5) == "aa…az"
