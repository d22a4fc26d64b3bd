"""The fetch command: nothing to do, one line a stage without a terminal, Ctrl-C, errors left to the caller."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from explorer.checkpoints import smollm2
from explorer.cli import fetch
from explorer.errors import FetchError


def test_nothing_to_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(smollm2, "is_fetched", lambda: True)
    monkeypatch.setattr(smollm2, "fetch", None)
    assert fetch.run(argparse.Namespace()) == 0
    assert "is here" in capsys.readouterr().out


def test_stages_are_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fake(progress: fetch.FetchBar) -> Path:
        for call in [(1, 3, "downloading"), (2, 3, "downloading"), (0, 0, "converting")]:
            progress(*call)
        return Path("somewhere")

    monkeypatch.setattr(smollm2, "is_fetched", lambda: False)
    monkeypatch.setattr(smollm2, "fetch", fake)
    assert fetch.run(argparse.Namespace()) == 0
    said = capsys.readouterr()
    assert said.out.startswith("downloading ...\nconverting ...\n")
    assert "somewhere" in said.out
    assert said.err == ""


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_progress: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "is_fetched", lambda: False)
    monkeypatch.setattr(smollm2, "fetch", interrupted)
    assert fetch.run(argparse.Namespace()) == 130
    assert "run fetch again" in capsys.readouterr().err


def test_a_failed_fetch_is_the_callers_to_print(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_progress: object) -> Path:
        raise FetchError("no network")

    monkeypatch.setattr(smollm2, "is_fetched", lambda: False)
    monkeypatch.setattr(smollm2, "fetch", failing)
    with pytest.raises(FetchError):
        fetch.run(argparse.Namespace())
