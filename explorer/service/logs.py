"""Logs that an operator may keep: one line a run, as words or as JSON, and never a word of anybody's prompt.

An exception's own text may quote what a visitor typed, so a line has its class and where it came from, not its text.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import datetime, timezone
from typing import Any

from explorer.codec import encode
from explorer.service.served_runner import RunReport
from explorer.trace import Step

FORMATS = ("text", "json")
LOG = logging.getLogger("explorer.runs")


class LineFormatter(logging.Formatter):
    """One line a record: ``key=value`` words, or a JSON object; ``fields`` given as extra come along."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._is_json = kind == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
            **getattr(record, "fields", {}),
            **_error(record),
        }
        if self._is_json:
            return json.dumps(fields, ensure_ascii=False)
        return " ".join(f"{key}={_word(value)}" for key, value in fields.items() if value is not None)


class RunLog:
    """A watcher that writes a line when a run ends."""

    def saw_step(self, report: RunReport, step: Step) -> None:
        """Steps have no lines."""

    def saw_end(self, report: RunReport) -> None:
        """Names, counts and times of the run."""
        LOG.info("run ended", extra={"fields": _rounded(encode(report))})


def configure_logs(kind: str) -> logging.Handler:
    """Write the lines of ``explorer``'s loggers to stderr from now on; returns the handler, for who takes it off."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(kind))
    logger = logging.getLogger("explorer")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return handler


def _event(record: logging.LogRecord) -> str:
    """The message as it was written in the program: what was filled into it might come from a visitor."""
    return str(record.msg) if record.exc_info else record.getMessage()


def _error(record: logging.LogRecord) -> dict[str, Any]:
    if not record.exc_info or record.exc_info[1] is None:
        return {}
    error = record.exc_info[1]
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]}


def _rounded(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, 3) if isinstance(value, float) else value for key, value in fields.items()}


def _word(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(' "=\n\r\t') else text
