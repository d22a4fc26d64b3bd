"""The serve command: a user's mistake is one line and exit 2, before anything listens."""

from __future__ import annotations

import socket

import pytest

from explorer.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--targets", "nothing"], "known presets: smollm2"),
        (["--drafter", "eagle2"], "METHOD=DIR_OR_ID"),
        (["--targets", "smollm2", "--drafter", "vicuna-7b-v1.3:medusa=a/b"], "one of the targets smollm2"),
        (["--port", "0"], "1 to 65535"),
        (["--port", "70000"], "1 to 65535"),
        (["--max-new-tokens", "0"], "--max-new-tokens must be at least 1, not 0"),
        (["--max-kept-mb", "-3"], "--max-kept-mb must be at least 1"),
        (["--grace", "-1"], "--grace must be seconds"),
        (["--server-metrics", "host:8000"], "--server-metrics 'host:8000': give http"),
    ],
)
def test_mistakes_exit_with_2_and_one_line(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert len(error.splitlines()) == 1


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert str(port) in error
    assert "Traceback" not in error
