"""What a server function may be sent; each of its functions is also tested with hostile payloads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from explorer.errors import TraceError
from explorer.ui.payloads import MAX_PAYLOAD_CHARS, UNEXPECTED, in_words, read_id, read_number, read_object, read_word


@pytest.mark.parametrize("payload", [None, 7, {}, "", "[]", "7", "{", "[" * 300, '"x"', " " * (MAX_PAYLOAD_CHARS + 1)])
def test_a_request_is_a_small_json_object(payload: object) -> None:
    with pytest.raises(TraceError, match="a request is"):
        read_object(payload)


def test_a_proper_request_is_read() -> None:
    raw = read_object('{"id": "a", "from": 3}')
    assert (read_id(raw["id"]), read_number(raw["from"], "from"), read_word("a", "kind", ("a", "b"))) == ("a", 3, "a")


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (lambda: read_id(""), "the id of a trace"),
        (lambda: read_id("x" * 101), "the id of a trace"),
        (lambda: read_number(True, "step"), "step is a whole number"),
        (lambda: read_number(-1, "step"), "step is a whole number"),
        (lambda: read_word("c", "kind", ("a", "b")), "kind is one of a, b"),
        (lambda: read_word(["a"], "kind", ("a", "b")), "kind is one of a, b"),
    ],
)
def test_anything_else_is_refused_by_name(read: Any, told: str) -> None:
    with pytest.raises(TraceError, match=told):
        read()


def test_mistakes_and_bugs_become_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    def answer(source: object, _payload: object) -> str:
        if source == "bug":
            raise KeyError("secret path")
        raise TraceError("there is no such run")

    assert json.loads(in_words(answer)("mistake", "")) == {"error": "there is no such run"}
    assert json.loads(in_words(answer)("bug", "")) == {"error": UNEXPECTED}
    assert "secret path" in caplog.text, "the log has it, the visitor has not"
