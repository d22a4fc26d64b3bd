"""A small server on this machine that streams chat completions as vLLM and SGLang do, and tells what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PIECE_SECONDS = 0.01


@dataclass
class Behaviour:
    """How it answers. pieces: the stream's texts; fails: prompts that get an error; tail: fields of the last event."""

    pieces: tuple[str, ...] = ("One", " two", " three four")
    num_tokens: int | None = 4
    fails: dict[str, int] = field(default_factory=dict)
    tail: dict[str, Any] = field(default_factory=dict)
    raw: str | None = None
    pages: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    num_at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def events(self) -> Iterator[str]:
        """The stream's lines."""
        if self.raw is not None:
            yield self.raw
            return
        yield ": keep-alive\n\n"
        yield _event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
        for piece in self.pieces:
            yield _event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        usage = {} if self.num_tokens is None else {"completion_tokens": self.num_tokens, "prompt_tokens": 7}
        yield _event({"choices": [], "usage": usage or None} | self.tail)
        yield "data: [DONE]\n\n"


@contextmanager
def chat_server(behaviour: Behaviour) -> Iterator[str]:
    """Its address while it runs."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Quiet."""

        def do_GET(self) -> None:
            page = behaviour.pages.get(self.path)
            self.send_response(200 if page is not None else 404)
            self.end_headers()
            self.wfile.write((page or "not here").encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with behaviour.lock:
                behaviour.asked.append(body | {"path": self.path})
                behaviour.headers.append({name.lower(): value for name, value in self.headers.items()})
                behaviour.num_at_once += 1
                behaviour.most_at_once = max(behaviour.most_at_once, behaviour.num_at_once)
            try:
                self._answer(body)
            finally:
                with behaviour.lock:
                    behaviour.num_at_once -= 1

        def _answer(self, body: dict[str, Any]) -> None:
            code = behaviour.fails.get(body["messages"][-1]["content"], 200)
            self.send_response(code)
            self.end_headers()
            if code != 200:
                self.wfile.write(json.dumps({"error": {"message": "no room\nhere"}}).encode())
                return
            for line in behaviour.events():
                self.wfile.write(line.encode())
                self.wfile.flush()
                if not line.startswith("data: [DONE]"):
                    time.sleep(PIECE_SECONDS)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _event(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"
