"""tests/run.py, the one command: what it decides, without installing anything."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import run
from tests.conftest import LONGEST_FIRST
from tests.structure.source import ROOT


@pytest.fixture
def made_up_checks(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bool]]:
    """Results by the tool's name; a tool not named passes."""
    results: dict[str, bool] = {}
    monkeypatch.setattr(
        run, "stream", lambda _python, _flag, *command: (results.get(command[0], True), "3 passed in 1 s")
    )
    return results


def test_it_needs_the_standard_library_only() -> None:
    tree = ast.parse((ROOT / "tests" / "run.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


@pytest.mark.parametrize("failing", ["ruff", "mypy", "pytest"])
def test_one_failed_check_fails_the_command(
    failing: str, made_up_checks: dict[str, bool], capsys: pytest.CaptureFixture[str]
) -> None:
    made_up_checks[failing] = False
    assert run.run_checks("python", (), 0.0) == 1
    printed = capsys.readouterr().out
    assert printed.count("FAILED") == (2 if failing == "ruff" else 1)
    assert "=== pytest" in printed, "the other checks run all the same"


def test_pytest_has_the_last_word(made_up_checks: dict[str, bool], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run_checks("python", (), 0.0) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed in 1 s"
    assert made_up_checks == {}


def test_stream_passes_output_on_and_keeps_the_last_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    ok, last = run.stream(sys.executable, "-c", "print('one'); print('two\\n')")
    assert (ok, last) == (True, "two")
    assert run.stream(sys.executable, "-c", "raise SystemExit(3)")[0] is False
    assert capfdbinary.readouterr().out.split() == [b"one", b"two"]


def test_a_chromium_that_does_not_run_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, status in (("chromium", 1), ("google-chrome", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "chromium"))
    assert run.find_chromium() == str(tmp_path / "google-chrome")


def test_an_environment_without_pip_is_not_taken(tmp_path: Path) -> None:
    assert not run.has_requirements(str(tmp_path / "bin" / "python"))


def test_extra_arguments_reach_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(run, "prepare_python", lambda: "python")
    monkeypatch.setattr(run, "run_checks", lambda _python, arguments, _started: asked.append(tuple(arguments)) or 0)
    monkeypatch.setattr(run, "ENVIRONMENT", {})
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(ROOT)
    assert run.main(["--fast", "-k", "tree"]) == 0
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ, "what one process compiles, the others find"
    assert asked == [("-m", "not browser and not default_target and not slow and not soak", "-k", "tree")]


@pytest.mark.parametrize(
    ("cores", "arguments", "expected"),
    [
        (1, [], ()),
        (2, [], ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")),
        (64, ["-k", "tree"], ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")),
        (8, ["-n", "8"], ()),
        (8, ["--pdb"], ()),
    ],
)
def test_test_files_are_spread_over_the_processors(
    monkeypatch: pytest.MonkeyPatch, cores: int, arguments: list[str], expected: tuple[str, ...]
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert run.workers(arguments) == expected


def test_the_longest_files_are_there_and_come_first(request: pytest.FixtureRequest) -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / "tests" / name).is_file()] == []
    places = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST_FIRST)}
    found = [places.get(item.path, len(places)) for item in request.session.items]
    assert found == sorted(found)
