"""What a server function is sent and what it answers: one string each way, checked in every part.

Server functions bypass the queue and answer anybody who can reach the server, with any JSON.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from explorer.errors import ExplorerError, TraceError

T = TypeVar("T")

MAX_PAYLOAD_CHARS = 1000
MAX_ID_CHARS = 100
UNEXPECTED = "The server could not answer this: its log says why. The page goes on."
LOG = logging.getLogger(__name__)


def in_words(answer: Callable[[T, object], str]) -> Callable[[T, object], str]:
    """The same function, its mistakes answered by ``{"error": sentence}``: a server function must not raise."""

    @functools.wraps(answer)
    def answered(source: T, payload: object) -> str:
        try:
            return answer(source, payload)
        except ExplorerError as error:
            return to_text({"error": str(error)})
        except Exception:  # the last boundary: the log gets the bug, the visitor a page that goes on
            LOG.exception("%s failed", answer.__name__)
            return to_text({"error": UNEXPECTED})

    return answered


def to_text(answer: dict[str, Any]) -> str:
    """An answer as JSON text."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_object(payload: object) -> dict[str, Any]:
    """The JSON object in a payload of unknown make; raises TraceError for anything else, as those below do."""
    if not isinstance(payload, str) or len(payload) > MAX_PAYLOAD_CHARS:
        raise TraceError(f"a request is JSON text of at most {MAX_PAYLOAD_CHARS} characters")
    try:
        raw = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise TraceError("a request is JSON text") from error
    if not isinstance(raw, dict):
        raise TraceError("a request is a JSON object")
    return raw


def read_id(raw: object) -> str:
    """The id of a trace; whether there is such a trace, the store says."""
    if not isinstance(raw, str) or not 0 < len(raw) <= MAX_ID_CHARS:
        raise TraceError("a request needs the id of a trace")
    return raw


def read_number(raw: object, name: str) -> int:
    """A count or an index."""
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise TraceError(f"a request's {name} is a whole number, 0 or more")
    return raw


def read_word(raw: object, name: str, known: tuple[str, ...]) -> str:
    """One of the known words."""
    if not isinstance(raw, str) or raw not in known:
        raise TraceError(f"a request's {name} is one of {', '.join(known)}")
    return raw
