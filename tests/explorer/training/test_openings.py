"""Openings are seeded, varied, and sometimes absent."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from explorer.errors import SettingError
from explorer.training.openings import choose_opening, read_openings


def test_openings_vary_and_repeat_with_the_seed() -> None:
    first, second = random.Random(1), random.Random(1)
    drawn = [choose_opening(first) for _ in range(400)]
    assert drawn == [choose_opening(second) for _ in range(400)]
    assert len(set(drawn)) > 60
    assert 10 < drawn.count("") < 90
    assert all(text == text.strip() for text in drawn)


def test_openings_of_a_file_are_the_only_ones(tmp_path: Path) -> None:
    (tmp_path / "openings.txt").write_text("Translate: Der\n\n  Who wrote \n", encoding="utf-8")
    openings = read_openings(tmp_path / "openings.txt")
    assert openings == ("Translate: Der", "Who wrote")
    source = random.Random(0)
    assert {choose_opening(source, openings) for _ in range(50)} == set(openings)


@pytest.mark.parametrize("content", [b"\n \n", b"\xff\xfe\x00", None])
def test_a_file_without_openings_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "openings.txt").write_bytes(content)
    with pytest.raises(SettingError, match="a line each"):
        read_openings(tmp_path / "openings.txt")
