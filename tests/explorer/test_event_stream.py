"""Server-sent events: whole however they are cut, refused where they are none, bounded."""

from __future__ import annotations

import pytest

from explorer import event_stream
from explorer.event_stream import AnswerError, events, told


def test_events_come_whole_however_the_bytes_are_cut() -> None:
    stream = 'event: x\r\ndata: {"a": "é"}\r\n\r\n: hi\n\ndata:{"b": 2}\n\ndata: [DONE]\n\ndata: {"c": 3}\n'.encode()
    for size in (1, 2, 5, len(stream)):
        pieces = (stream[at : at + size] for at in range(0, len(stream), size))
        assert list(events(pieces)) == [{"a": "é"}, {"b": 2}]


def test_the_end_is_told_once_and_what_follows_it_is_passed_over() -> None:
    ended: list[bool] = []
    stream = b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: nonsense\n\ndata: [DONE]\n\n'
    assert list(events(iter([stream]), lambda: ended.append(True))) == [{"a": 1}]
    assert ended == [True]


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 40, b": no line is too long\n"], ids=["a line", "all lines"])
def test_a_stream_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    monkeypatch.setattr(event_stream, "MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(event_stream, "MAX_ANSWER_BYTES", 5000)
    with pytest.raises(AnswerError, match="larger than any answer"):
        list(events(iter([piece] * 1000)))


@pytest.mark.parametrize(
    "data", [b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b"NaN", b'"x"', b"null"], ids=lambda data: repr(data[:8])
)
def test_what_is_no_object_is_one_short_line(data: bytes) -> None:
    with pytest.raises(AnswerError) as caught:
        list(events(iter([b"data: " + data + b"\n"])))
    assert len(str(caught.value)) < 300


def test_error_answers_of_every_form() -> None:
    for answer in ({"error": {"message": "no\nroom"}}, {"message": "no room"}, {"detail": "no room"}):
        assert told(answer) == "no room"
    assert told({"error": {}}) is told([]) is None
