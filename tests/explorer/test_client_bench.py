"""An endpoint measured from outside: what is asked, what is counted, what a failing server leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from explorer.client_bench import MAX_FAILURES, Endpoint, ask, chat_address, run_client_bench
from explorer.errors import SettingError
from explorer.event_stream import AnswerError
from explorer.measurement import ResultsFile
from explorer.questions import Question
from tests.support.chat_server import Behaviour, chat_server

QUESTIONS = [Question(str(number), "all", f"Question {number}?") for number in range(6)]
SPECULATIVE = {
    "metrics": {
        "speculative_decoding": {
            "num_spec_steps": 2,
            "num_accepted_draft_tokens": 1,
            "num_draft_tokens": 6,
            "acceptance_histogram": [1, 1],
        }
    }
}


def endpoint(url: str, **more: object) -> Endpoint:
    return Endpoint(url=chat_address("--url", url), model="tiny", **more)  # type: ignore[arg-type]


def measure(url: str, results: ResultsFile, concurrency: int = 1, **more: object) -> list[str | None]:
    progress = run_client_bench(endpoint(url, **more), "endpoint", QUESTIONS, results, concurrency)
    return [step.failure for step in progress][1:]


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/chat/completions"])
def test_the_server_its_api_or_the_whole_address_may_be_named(path: str) -> None:
    assert chat_address("--url", f"http://host:1{path}") == "http://host:1/v1/chat/completions"
    assert chat_address("--url", "http://host/api/v3") == "http://host/api/v3/chat/completions"


def test_every_question_is_asked_once_after_a_warm_up(tmp_path: Path) -> None:
    behaviour = Behaviour(tail=SPECULATIVE)
    results = ResultsFile(tmp_path / "r.jsonl", {})
    with chat_server(behaviour) as url:
        assert measure(url, results, max_new_tokens=9, system="Be brief.", seed=3, extra={"top_p": 0.9}) == [None] * 6
    warm_up, *asked = behaviour.asked
    assert warm_up["max_tokens"] == 4
    assert [body["messages"][-1]["content"] for body in asked] == [question.text for question in QUESTIONS]
    first = asked[0]
    assert (first["model"], first["max_tokens"], first["seed"], first["top_p"]) == ("tiny", 9, 3, 0.9)
    assert first["messages"][0] == {"role": "system", "content": "Be brief."}
    assert first["stream"] is True and first["stream_options"] == {"include_usage": True}
    measured = results.measurements[0]
    assert measured.client is not None
    assert (measured.client.text, measured.client.num_tokens, measured.stop) == ("One two three four", 4, "stop")
    assert (measured.num_prompt_tokens, len(measured.client.gaps_ms)) == (7, 2)
    assert (measured.num_steps, measured.num_accepted_draft_tokens, measured.num_draft_tokens) == (2, 1, 6)
    assert measured.decode_ms == pytest.approx(sum(measured.client.gaps_ms))
    assert measured.tokens_per_second == pytest.approx(3 * 1000 / measured.decode_ms)
    assert measured.client.ended_s - measured.client.started_s == pytest.approx(
        (measured.prefill_ms + measured.decode_ms) / 1000, abs=1e-5
    )


def test_as_many_requests_are_under_way_as_asked_for(tmp_path: Path) -> None:
    for concurrency in (1, 3):
        behaviour = Behaviour()
        with chat_server(behaviour) as url:
            measure(url, ResultsFile(tmp_path / f"{concurrency}.jsonl", {}), concurrency)
        assert behaviour.most_at_once == concurrency


def test_a_second_run_asks_only_what_is_missing(tmp_path: Path) -> None:
    behaviour = Behaviour(fails={"Question 2?": 503})
    path = tmp_path / "r.jsonl"
    with chat_server(behaviour) as url:
        failures = measure(url, ResultsFile(path, {}))
        assert [failure for failure in failures if failure] == ["question 2: 503 Service Unavailable: no room here"]
        behaviour.fails.clear()
        behaviour.asked.clear()
        assert measure(url, ResultsFile(path, {})) == [None]
        assert [body["messages"][-1]["content"] for body in behaviour.asked] == ["Question 2?"] * 2  # a warm-up first
        behaviour.asked.clear()
        assert measure(url, ResultsFile(path, {})) == []
        assert behaviour.asked == []


def test_a_server_that_never_answers_ends_the_benchmark(tmp_path: Path) -> None:
    all_fail = Behaviour(fails={question.text: 500 for question in QUESTIONS})
    with chat_server(all_fail) as url, pytest.raises(SettingError, match="does not answer as expected: 500"):
        measure(url, ResultsFile(tmp_path / "r.jsonl", {}))
    with pytest.raises(SettingError, match="does not answer as expected"):
        measure(url, ResultsFile(tmp_path / "r.jsonl", {}))  # it is gone
    most = Behaviour(fails={question.text: 500 for question in QUESTIONS[1:]})
    with chat_server(most) as url, pytest.raises(SettingError, match=f"{MAX_FAILURES} requests in a row failed"):
        measure(url, ResultsFile(tmp_path / "s.jsonl", {}))
    assert not (tmp_path / "r.jsonl").exists()


def test_a_key_goes_into_the_header_and_nowhere_else(tmp_path: Path) -> None:
    behaviour, path = Behaviour(), tmp_path / "r.jsonl"
    with chat_server(behaviour) as url:
        measure(url, ResultsFile(path, {}), key="sesame")
    assert {headers["authorization"] for headers in behaviour.headers} == {"Bearer sesame"}
    assert "sesame" not in path.read_text(encoding="utf-8") + json.dumps(behaviour.asked)
    assert "sesame" not in repr(endpoint("http://host", key="sesame"))


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ("data: {nope\n\n", "not JSON"),
        ("data: [1]\n\n", "no object"),
        ('data: {"error": {"message": "out of\\nmemory"}}\n\n', "the server says: out of memory"),
        ("data: [DONE]\n\n", "no text"),
        ("", "no text"),
        ('data: {"choices": [null], "usage": 3}\n\ndata: {"choices": 5}\n\n', "no text"),
    ],
)
def test_streams_that_are_none_are_told(raw: str, says: str) -> None:
    with (
        chat_server(Behaviour(raw=raw)) as url,
        httpx.Client(timeout=5) as client,
        pytest.raises(AnswerError, match=says),
    ):
        ask(client, endpoint(url), "endpoint", QUESTIONS[0])


def test_without_a_count_pieces_are_counted_and_said_to_be() -> None:
    with chat_server(Behaviour(num_tokens=None)) as url, httpx.Client(timeout=5) as client:
        view = ask(client, endpoint(url), "endpoint", QUESTIONS[0]).client
    assert view is not None
    assert (view.num_tokens, view.is_counted_by_pieces) == (3, True)


def test_thoughts_are_pieces_too_and_count_once() -> None:
    thought = {"choices": [{"delta": {"reasoning": "Hm", "reasoning_content": "Hm", "content": None}}]}
    said = {"choices": [{"delta": {"content": "Yes"}}]}
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in (thought, said))
    with chat_server(Behaviour(raw=raw + "data: [DONE]\n\n")) as url, httpx.Client(timeout=5) as client:
        view = ask(client, endpoint(url), "endpoint", QUESTIONS[0]).client
    assert view is not None
    assert (view.text, view.num_tokens) == ("HmYes", 2)
