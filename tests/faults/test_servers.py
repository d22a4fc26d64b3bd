"""Servers that hang, lie, pack, or break off: one line says so, nothing waits for ever, nothing secret is shown."""

from __future__ import annotations

import gzip
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from explorer.__main__ import main, one_line
from explorer.client_bench import Endpoint, ask, run_client_bench
from explorer.endpoints import check_url, fetch_page
from explorer.errors import SettingError
from explorer.event_stream import AnswerError
from explorer.measurement import Measurement, ResultsFile
from explorer.questions import Question
from explorer.server_metrics import read_page
from tests.structure.source import ROOT
from tests.support.chat_server import Behaviour, chat_server
from tests.support.goldens import FOLDER
from tests.support.raw_server import EVENT_STREAM, Answer, raw_server, sends

QUESTION = Question("1", "all", "Question?")
WORD = b'data: {"choices": [{"delta": {"content": "One"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
PATIENCE = 0.6  # seconds that a client here waits
LONG = 60  # seconds that no test waits


def asked(answer: Answer, key: str | None = None) -> Measurement:
    """One question to a server that answers so, from a client that waits no longer than PATIENCE."""
    with raw_server(answer) as url, httpx.Client(timeout=PATIENCE) as client:
        return ask(client, Endpoint(url=url, model="tiny", seconds=PATIENCE, key=key), "endpoint", QUESTION)


def held_open(*pieces: bytes) -> Answer:
    """These bytes, and then a connection that nobody closes."""

    def answer(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
        connection.settimeout(LONG)
        connection.recv(1)  # until the client has enough

    return answer


def repeated(start: bytes, piece: bytes) -> Answer:
    """A start, and then the same bytes again and again, as long as somebody reads them."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(start)
        until = time.monotonic() + LONG
        while time.monotonic() < until:
            connection.sendall(piece)
            time.sleep(0.02)

    return answer


def test_a_page_whose_headers_never_end_is_given_up_in_time() -> None:
    """Every byte comes before a read is out of time; only the whole is late."""
    for start in (b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"):
        with raw_server(repeated(start, b"x")) as url, pytest.raises(SettingError, match="in time|still sending"):
            fetch_page(url, seconds=PATIENCE)


def test_a_packed_page_is_not_unpacked() -> None:
    """Packed twice, these few bytes would be 64 MiB."""
    bomb = gzip.compress(gzip.compress(bytes(2**26)))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    with raw_server(sends(head, bomb)) as url, pytest.raises(SettingError, match="sends its answer packed"):
        fetch_page(url, seconds=5)
    with pytest.raises(AnswerError, match="sends its answer packed"):
        asked(sends(head, bomb))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", "answers 302 Found"),
        (b"HTTP/1.1 500 " + b"x" * 5000 + b"\r\nContent-Length: 0\r\n\r\n", "answers 500 xxx"),
        (b"garbage\r\n\r\n", "cannot be read"),
        (b"", "cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx 1\n", "cannot be read"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "cannot be read"),
    ],
    ids=["redirect", "long words", "garbage", "nothing", "cut", "negative"],
)
def test_pages_that_are_none(answer: bytes, says: str) -> None:
    with raw_server(sends(answer)) as url, pytest.raises(SettingError, match=says) as caught:
        fetch_page(url, seconds=5)
    assert len(str(caught.value)) < 400


def test_counters_beyond_all_counting_are_passed_over() -> None:
    lines = [f'vllm:spec_decode_num_drafts_total{{engine="{n}"}} {value}' for n, value in enumerate(("1e308", "3"))]
    page = "\n".join([*lines, *lines, ""])
    (counts,) = read_page(page, "here", 0.0).counts.values()
    assert counts.steps == 6


@pytest.mark.parametrize(
    "text",
    ["htp://me:secret@host", "me:secret@host", "http:/me:secret@host", "ftp://host?token=secret", "//a:secret@b"],
)
def test_a_password_in_what_is_no_address_is_not_shown(text: str) -> None:
    with pytest.raises(SettingError) as caught:
        check_url("--url", text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("host", ["a" * 300, "a" * 64, "xn--", ".", "a..b", "[::1", "ü" * 70])
def test_hosts_that_no_resolver_takes_are_refused(host: str) -> None:
    with pytest.raises(SettingError, match="give http"):
        check_url("--url", f"http://{host}/metrics")


def test_an_answer_that_breaks_off_is_none() -> None:
    """Without a length, a closed connection looks like an end."""
    with pytest.raises(AnswerError, match="ended before the answer did"):
        asked(sends(EVENT_STREAM, WORD, WORD))
    assert asked(sends(EVENT_STREAM, WORD, DONE)).stop == "unknown"


def test_a_connection_that_stays_open_after_the_end_costs_no_answer() -> None:
    found = asked(held_open(EVENT_STREAM, WORD, DONE))
    assert found.client is not None and found.client.text == "One"


@pytest.mark.parametrize("piece", [b": keep-alive\n\n", b"data: {}\n\n", b"x"], ids=["comments", "events", "a line"])
def test_a_stream_without_words_is_given_up_in_time(piece: bytes) -> None:
    with pytest.raises(AnswerError, match="no word in"):
        asked(repeated(EVENT_STREAM, piece))


@pytest.mark.parametrize(
    "answer",
    [
        held_open(),
        held_open(EVENT_STREAM, WORD),
        sends(EVENT_STREAM, b"data: \xff\xfe\x00\n\n"),
        sends(EVENT_STREAM, b"\x00" * 9000),
        sends(b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"),
        sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata"),
        sends(b"HTTP/1.1 503 " + b"x" * 5000 + b"\r\nContent-Length: 0\r\n\r\n"),
    ],
    ids=["silence", "half", "no UTF-8", "zeros", "redirect", "cut chunk", "long words"],
)
def test_answers_that_are_none(answer: Answer) -> None:
    with pytest.raises(AnswerError) as caught:
        asked(answer)
    assert len(str(caught.value)) < 400


def test_a_server_that_repeats_the_key_does_not_make_us_show_it() -> None:
    said = b'{"error": {"message": "wrong key sesame-street"}}'
    head = f"HTTP/1.1 401 Unauthorized\r\nContent-Length: {len(said)}\r\n\r\n".encode()
    with pytest.raises(AnswerError, match="wrong key \\(the key\\)") as caught:
        asked(sends(head, said), key="sesame-street")
    assert "sesame-street" not in str(caught.value)


@pytest.mark.parametrize("count", [True, -3, 10**400, 1.5, "7", [7], None], ids=lambda count: str(count)[:9])
def test_counts_that_are_none_neither_end_a_run_nor_spoil_its_file(tmp_path: Path, count: object) -> None:
    usage = {"usage": {"completion_tokens": count, "prompt_tokens": count}}
    behaviour, path = Behaviour(num_tokens=None, tail=usage), tmp_path / "r.jsonl"
    with chat_server(behaviour) as url:
        endpoint = Endpoint(url=f"{url}/v1/chat/completions", model="tiny")
        assert [step.failure for step in run_client_bench(endpoint, "lane", [QUESTION], ResultsFile(path, {}), 1)]
    (kept,) = ResultsFile(path, {}).measurements
    assert (kept.num_prompt_tokens, kept.num_output_tokens) == (0, 3)
    assert kept.tokens_per_second


def test_answers_with_counts_beyond_counting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers.jsonl"
    stats = {"num_spec_steps": 3, "num_accepted_draft_tokens": 10**400, "num_draft_tokens": 6}
    path.write_text(json.dumps({"id": "\ud800\x1b[2J", "metrics": {"speculative_decoding": stats}}))
    for more in ([], ["--json"]):
        assert main(["responses", str(path), *more]) == 0
        assert "\x1b[2J" not in capsys.readouterr().out


def test_no_message_moves_the_cursor() -> None:
    assert one_line("a\x1b[2J\nb\x00 \u202e") == "a⟨U+001B⟩[2J b⟨U+0000⟩ ⟨U+202E⟩"


def test_two_that_begin_one_results_file_at_once_both_keep_what_they_measured(tmp_path: Path) -> None:
    path, both = tmp_path / "r.jsonl", threading.Barrier(2)
    with raw_server(sends(EVENT_STREAM, WORD, DONE)) as url, httpx.Client(timeout=PATIENCE) as client:
        found = ask(client, Endpoint(url=url, model="tiny"), "endpoint", QUESTION)

    def measure() -> None:
        results = ResultsFile(path, {"of": "this"})
        both.wait(LONG)
        results.add(found)

    threads = [threading.Thread(target=measure) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [item.key for item in ResultsFile(path, {"of": "this"}).measurements] == [("1", "endpoint")] * 2
    with pytest.raises(SettingError, match="other settings"):
        ResultsFile(path, {"of": "that"})


def test_a_file_in_the_folders_place_is_said_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(SettingError, match="is a file"):
        ResultsFile(tmp_path / "out" / "results.jsonl", {})
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("line", ["1", "null", '"bench"', "[]", "[1]", "{}", "{", "[" * 5000])
def test_a_line_that_is_no_measurement_is_said_to_be_none(tmp_path: Path, line: str) -> None:
    path = tmp_path / "r.jsonl"
    for lines in (f'{{"bench": {{}}}}\n{line}\n', f"{line}\n"):
        path.write_text(lines)
        with pytest.raises(SettingError, match="r.jsonl (is no results file|holds results of other)"):
            ResultsFile(path, {})
        assert path.read_text() == lines


def test_reports_of_somebody_else_are_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "report.md").write_text("mine")
    (tmp_path / "q.txt").write_text("Question?\n")
    question = ["--questions", str(tmp_path / "q.txt"), "--out", str(tmp_path)]
    behaviour = Behaviour()
    with chat_server(behaviour) as url:
        assert main(["client-bench", "--url", url, "--model", "tiny", *question]) == 2
    assert behaviour.asked == [] and "holds report.md" in capsys.readouterr().err
    assert main(["bench", "--methods", "autoregressive", "--target", str(FOLDER / "base_a"), *question]) == 2
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"report.md": "mine", "q.txt": "Question?\n"}


def test_an_interrupt_keeps_what_was_answered_and_the_next_run_asks_the_rest(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("".join(f"Question {number}?\n" for number in range(40)))
    out = tmp_path / "out"
    behaviour = Behaviour(pieces=("One",) * 8)
    with chat_server(behaviour) as url:
        question = ["--url", url, "--model", "tiny", "--questions", str(tmp_path / "q.txt"), "--out", str(out)]
        command = [sys.executable, "-m", "explorer", "client-bench", *question, "--concurrency", "2"]
        run = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + LONG
        while len(behaviour.asked) < 9 and time.monotonic() < until:
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=LONG)
        assert run.returncode == 130 and "Traceback" not in err and err.rstrip().endswith("interrupted")
        kept = (out / "results.jsonl").read_text().count('question_id":')
        assert 0 < kept < 40
        assert [path.name for path in out.iterdir()] == ["results.jsonl"]
        behaviour.asked.clear()
        behaviour.pieces = ("One",)
        assert main(["client-bench", *question, "--concurrency", "2"]) == 0
        assert len(behaviour.asked) == 40 - kept + 1  # a warm-up first
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["num_questions"] == 40
