"""Server-sent events, as OpenAI-compatible servers stream their answers. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from explorer.errors import ExplorerError

MAX_ANSWER_BYTES = 64 * 2**20
MAX_LINE_BYTES = 4 * 2**20
MAX_TOLD = 120  # characters of what a server says in a message of ours


class AnswerError(ExplorerError):
    """An answer that did not come, or that is none; the benchmark goes on with the next question."""


def events(pieces: Iterator[bytes], finish: Callable[[], None] = lambda: None) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events, up to ``[DONE]``; raises AnswerError for what is none.

    The stream is read to its end, so that its connection serves the next request. finish: called at ``[DONE]``.
    """
    size, rest, is_done = 0, b"", False
    for piece in pieces:
        size += len(piece)
        *lines, rest = (rest + piece).split(b"\n")
        if size > MAX_ANSWER_BYTES or len(rest) > MAX_LINE_BYTES:
            raise AnswerError("the answer is larger than any answer is")
        for line in lines:
            text = line.strip().decode("utf-8", errors="replace")
            if is_done or not text.startswith("data:"):
                continue  # a comment that keeps the connection, an event's name, an empty line
            text = text.removeprefix("data:").strip()
            if text == "[DONE]":
                is_done = True
                finish()
            else:
                yield _event(text)


def _event(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the stream holds what is not JSON: {text[:MAX_TOLD]!r}") from error
    if not isinstance(found, dict):
        raise AnswerError("the stream holds JSON that is no object")
    if found.get("error"):
        raise AnswerError(f"the server says: {told(found)}")
    return found


def told(answer: object) -> str | None:
    """The message of an error answer in any of the usual forms; None where there is none."""
    if not isinstance(answer, dict):
        return None
    error = answer.get("error") or answer.get("message") or answer.get("detail")
    text = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(text).split())[:MAX_TOLD] if text else None
