"""Log lines: JSON or words, one a run, and nothing that a visitor typed, not even through an exception's text."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from explorer.service.logs import LineFormatter, RunLog, configure_logs
from explorer.service.served_runner import RunReport


@pytest.fixture(params=["json", "text"])
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What the ``explorer`` loggers write while the test runs."""
    logger = logging.getLogger("explorer")
    before = logger.level, logger.propagate
    handler = configure_logs(request.param)
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(io.StringIO())
    yield handler.stream
    logger.removeHandler(handler)
    logger.setLevel(before[0])
    logger.propagate = before[1]


def test_a_run_is_one_line(lines: io.StringIO) -> None:
    RunLog().saw_end(RunReport("ab12", "eagle2", "my target", 1.23456, 7.0, 20, 64, 30, "eos"))
    (line,) = lines.getvalue().splitlines()
    if line.startswith("{"):
        found = json.loads(line)
        assert (found["event"], found["run"], found["method"], found["waited_s"]) == (
            "run ended",
            "ab12",
            "eagle2",
            1.235,
        )
        assert found["level"] == "info"
    else:
        assert 'event="run ended" run=ab12 method=eagle2 target="my target" waited_s=1.235 seconds=7.0' in line


def test_an_error_has_its_class_and_place_but_not_its_text(lines: io.StringIO) -> None:
    try:
        raise ValueError("cannot read 'my private prompt\nof two lines'")
    except ValueError:
        logging.getLogger("explorer.ui.handlers").exception("a run of %s failed", "eagle2")
    (line,) = lines.getvalue().splitlines()
    assert "ValueError" in line
    assert "test_logs.py" in line
    assert "private" not in line


def test_a_word_with_spaces_or_lines_stays_one_word() -> None:
    record = logging.LogRecord("explorer", logging.INFO, "", 0, 'a "b"\nc=d', None, None)
    assert LineFormatter("text").format(record).endswith(r'event="a \"b\"\nc=d"')
