"""Budgets: short files, and the limits that ruff enforces on functions are really set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.structure.source import ROOT

MAX_LINES = 300
FOLDERS = ("explorer", "kernels", "tests", "assets/viewer")
SOURCES = sorted(
    path
    for path in (ROOT / "app.py", *(found for folder in FOLDERS for found in (ROOT / folder).rglob("*")))
    if path.suffix in (".py", ".js") and path.is_file()
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_short(path: Path) -> None:
    num_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert num_lines <= MAX_LINES, f"{num_lines} lines; split it by subject"


@pytest.mark.parametrize(
    ("name", "value"),
    [("line-length", 120), ("max-complexity", 10), ("max-args", 6), ("max-statements", 40)],
)
def test_ruff_holds_the_function_budgets(name: str, value: int) -> None:
    text = (ROOT / ".ruff.toml").read_text(encoding="utf-8")
    assert re.findall(rf"^{name} = (\d+)", text, re.MULTILINE) == [str(value)]


@pytest.mark.parametrize("rule", ["E", "F", "W", "I", "B", "UP", "SIM", "C901", "PLR0912", "PLR0913", "PLR0915", "BLE"])
def test_ruff_selects(rule: str) -> None:
    text = (ROOT / ".ruff.toml").read_text(encoding="utf-8")
    selected = text[text.index("select = [") : text.index("ignore = [")]
    assert f'"{rule}"' in selected


def test_no_budget_is_waived_in_place() -> None:
    waived = re.compile(r"noqa:[^\n]*(C901|PLR09\d\d)|ruff: noqa")
    found = [
        str(path) for path in SOURCES if path.name != Path(__file__).name and waived.search(path.read_text("utf-8"))
    ]
    assert found == []
