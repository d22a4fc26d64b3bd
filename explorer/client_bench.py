"""The benchmark from outside: an OpenAI-compatible endpoint, asked by several clients at once, its stream timed.

Answers are streamed chat completions (server-sent events), as vLLM, SGLang and others give them. Clients are threads:
each takes the next question when its answer is whole, so that as many requests are under way as was asked for.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from explorer.endpoints import AS_IT_IS, MAX_SHOWN, check_plain, check_url, reason, status
from explorer.errors import ExplorerError, SettingError
from explorer.event_stream import AnswerError, events, told
from explorer.measurement import ClientView, Measurement, ResultsFile
from explorer.questions import Question
from explorer.served_stats import read_count, read_stats

CHAT = "/chat/completions"
MAX_FAILURES = 5  # in a row, after which nothing is asked any more
WARM_UP_TOKENS = 4


@dataclass(frozen=True)
class Endpoint:
    """What every request has in common. key: goes into the request's header and nowhere else."""

    url: str
    model: str
    max_new_tokens: int = 128
    temperature: float = 0.0
    seed: int | None = None
    system: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 300.0  # without a word from the server
    key: str | None = field(default=None, repr=False)

    def body(self, text: str, max_new_tokens: int) -> dict[str, Any]:
        """The JSON of a request; ``extra`` goes over what is here."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [*messages, {"role": "user", "content": text}],
            "max_tokens": max_new_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return body | ({} if self.seed is None else {"seed": self.seed}) | dict(self.extra)


@dataclass(frozen=True)
class ClientProgress:
    """A question was answered, or was not: how far the benchmark is."""

    num_done: int
    num_all: int
    measurement: Measurement | None
    failure: str | None = None


def chat_address(option: str, text: str) -> str:
    """The address of chat completions: of a server, of its ``/v1``, or itself. SettingError for no address."""
    url = check_url(option, text)
    if url.endswith(CHAT):
        return url
    return f"{url}{CHAT}" if urlsplit(url).path.strip("/") else f"{url}/v1{CHAT}"


def run_client_bench(
    endpoint: Endpoint, lane: str, questions: Sequence[Question], results: ResultsFile, concurrency: int
) -> Iterator[ClientProgress]:
    """Ask every question that ``results`` lacks, ``concurrency`` of them at a time.

    One short request warms the server up first; if that fails, SettingError says so and nothing is measured. What fails
    later is told, not kept, and asked again by the next run.
    """
    left = [question for question in questions if (question.id, lane) not in results]
    num_all, num_done = len(questions), len(questions) - len(left)
    yield ClientProgress(num_done, num_all, None)
    if not left:
        return
    with httpx.Client(timeout=endpoint.seconds, limits=_limits(concurrency), follow_redirects=False) as client:
        try:
            ask(client, endpoint, lane, left[0], WARM_UP_TOKENS)
        except AnswerError as error:
            raise SettingError(f"{endpoint.url} does not answer as expected: {error}") from error
        failures = 0
        with _Clients(lambda question: ask(client, endpoint, lane, question), left, concurrency) as clients:
            for _ in left:
                question, found = clients.next()
                num_done += 1
                if isinstance(found, Measurement):
                    failures = 0
                    results.add(found)
                    yield ClientProgress(num_done, num_all, found)
                    continue
                failures += 1
                yield ClientProgress(num_done, num_all, None, f"question {question.id}: {found}")
                if failures == MAX_FAILURES:
                    raise SettingError(
                        f"{failures} requests in a row failed, the last one: {found}; what was done is kept"
                    )


def ask(
    client: httpx.Client, endpoint: Endpoint, lane: str, question: Question, max_new_tokens: int | None = None
) -> Measurement:
    """Stream one answer and time it; raises AnswerError, which never holds the key."""
    body = endpoint.body(question.text, max_new_tokens or endpoint.max_new_tokens)
    answer, started_s, started = _Answer(), time.time(), time.perf_counter()
    try:
        _stream(client, endpoint, body, answer)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ExplorerError) as error:
        if not answer.is_done:  # else it was whole, and only its connection was not
            said = str(error) if isinstance(error, ExplorerError) else reason(error)
            raise AnswerError(said.replace(endpoint.key, "(the key)") if endpoint.key else said) from error
    return answer.measured(lane, question, started_s, started)


def _stream(client: httpx.Client, endpoint: Endpoint, body: dict[str, Any], answer: _Answer) -> None:
    """Send a request and give ``answer`` what comes of it, as it comes."""
    headers = AS_IT_IS | ({"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {})
    with client.stream("POST", endpoint.url, json=body, headers=headers) as response:
        if response.status_code != httpx.codes.OK:
            raise AnswerError(f"{status(response)}: {_said(response)}")
        check_plain(response, endpoint.url)
        for event in events(answer.heard(response.iter_raw(), endpoint.seconds), answer.finish):
            answer.take(event, time.perf_counter())


class _Answer:
    """One answer, as its pieces arrive. is_done: the server said that it was all."""

    def __init__(self) -> None:
        self.is_done = False
        self._heard_at = time.perf_counter()
        self._texts: list[str] = []
        self._times: list[float] = []
        self._stop: str | None = None
        self._usage: dict[str, Any] = {}
        self._whole: dict[str, Any] = {}

    def heard(self, pieces: Iterator[bytes], seconds: float) -> Iterator[bytes]:
        """The pieces, as long as words come with them: empty events would keep a connection for ever."""
        for piece in pieces:
            yield piece
            if time.perf_counter() - self._heard_at > seconds:
                raise AnswerError(f"no word in {seconds:g} s")

    def finish(self) -> None:
        """Nothing belongs to it any more."""
        self.is_done = True

    def take(self, event: dict[str, Any], now: float) -> None:
        """Keep what one event says; a piece is an event with text."""
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta = choice.get("delta")
        if text := _text_of(delta if isinstance(delta, dict) else {}):
            self._texts.append(text)
            self._times.append(now)
            self._heard_at = now
        if isinstance(stop := choice.get("finish_reason"), str):
            self._stop = stop
        if isinstance(usage := event.get("usage"), dict):
            self._usage = usage
        if isinstance(event.get("metrics"), dict) or isinstance(event.get("sglext"), dict):
            self._whole |= event

    def measured(self, lane: str, question: Question, started_s: float, started: float) -> Measurement:
        """The answer's times and counts; raises AnswerError where nothing was written."""
        if not self._times:
            raise AnswerError("the answer has no text")
        if not self.is_done and self._stop is None:
            raise AnswerError("the stream ended before the answer did")
        counted = read_count(self._usage, "completion_tokens")
        stats = read_stats(self._whole | {"usage": self._usage})
        first, last = self._times[0], self._times[-1]
        view = ClientView(
            started_s=started_s,
            ended_s=started_s + last - started,
            gaps_ms=[1000 * (after - before) for before, after in zip(self._times, self._times[1:], strict=False)],
            num_tokens=counted or len(self._times),
            text="".join(self._texts),
            is_counted_by_pieces=not counted,
        )
        has_counts = stats is not None and stats.num_accepted is not None
        return Measurement(
            question_id=question.id,
            category=question.category,
            method=lane,
            output=[],
            stop=self._stop or "unknown",
            num_prompt_tokens=read_count(self._usage, "prompt_tokens") or 0,
            prefill_ms=1000 * (first - started),
            decode_ms=1000 * (last - first),
            num_steps=stats.num_steps if stats and has_counts else 0,
            num_draft_tokens=(stats.num_drafted or 0) if stats and has_counts else 0,
            num_accepted_draft_tokens=(stats.num_accepted or 0) if stats and has_counts else 0,
            acceptance_histogram=stats.histogram if stats and has_counts else [],
            client=view,
        )


def _text_of(delta: Mapping[str, Any]) -> str:
    """The text of a piece: of the answer, or of the thoughts before it, which some servers send under two names."""
    found = [delta.get(name) for name in ("content", "reasoning", "reasoning_content")]
    return next((text for text in found if isinstance(text, str) and text), "")


class _Clients:
    """Threads that ask questions and hand back what came, in the order it came."""

    def __init__(self, ask_one: Callable[[Question], Measurement], questions: Sequence[Question], count: int) -> None:
        self._ask = ask_one
        self._left: queue.SimpleQueue[Question] = queue.SimpleQueue()
        for question in questions:
            self._left.put(question)
        self._found: queue.SimpleQueue[tuple[Question, Measurement | AnswerError]] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(min(count, len(questions)))]

    def __enter__(self) -> _Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """No thread begins another question; one that still waits for the server is left to the process' end."""
        with suppress(queue.Empty):
            while True:
                self._left.get_nowait()

    def next(self) -> tuple[Question, Measurement | AnswerError]:
        """The next question that is over."""
        return self._found.get()

    def _work(self) -> None:
        with suppress(queue.Empty):
            while True:
                question = self._left.get_nowait()
                found: Measurement | AnswerError = AnswerError("the client broke off")
                try:
                    found = self._ask(question)
                except AnswerError as error:
                    found = error
                finally:  # whoever waits for it is never left waiting
                    self._found.put((question, found))


def _limits(concurrency: int) -> httpx.Limits:
    return httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)


def _said(response: httpx.Response) -> str:
    """What an error answer says, as far as it is short text."""
    with suppress(httpx.HTTPError, httpx.StreamError):
        text = next(response.iter_raw(), b"")[: 16 * MAX_SHOWN].decode("utf-8", errors="replace")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        return told(found) or " ".join(text.split())[:MAX_SHOWN]
    return ""
