"""A visitor without a browser: speaks to the real server over HTTP as the page does."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from explorer.ui.controls import COMMON, SAMPLING, fields, method_forms

TIMEOUT = httpx.Timeout(120.0)
API = "/gradio_api"


@dataclass
class Outcome:
    """What a visitor saw of one run. refused: why the queue did not take it."""

    refused: str = ""
    handles: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    seconds_to_first_token: float | None = None

    @property
    def last(self) -> str:
        """The last sentence of the status line."""
        return str(self.statuses[-1]["text"]) if self.statuses else ""


class Visitor:
    """One tab: a session of its own on the server at ``url``."""

    def __init__(self, url: str, target: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=TIMEOUT)
        self.session = secrets.token_hex(8)
        self.target = target
        config = self.http.get("/config").json()
        self._run_id = next(one["id"] for one in config["dependencies"] if one["api_name"] == "run_trace")
        self._viewer = next(one["id"] for one in config["components"] if one["props"].get("elem_id") == "viewer")

    def run(self, prompt: object, method: object = "eagle2", **changes: object) -> Outcome:
        """One run to its end."""
        outcome, began = Outcome(), time.monotonic()
        for message in self.messages(prompt, method, **changes):
            if "refused" in message:
                outcome.refused = str(message["refused"])
                continue
            if message["msg"] == "process_completed" and not message.get("success"):
                outcome.errors.append(message)
            for value in _json_objects(message.get("output", {})):
                if value.keys() >= {"kind", "text"}:
                    outcome.statuses.append(value)
                elif value.keys() >= {"id", "steps"}:
                    outcome.handles.append(value)
                    outcome.seconds_to_first_token = outcome.seconds_to_first_token or time.monotonic() - began
        return outcome

    def messages(self, prompt: object, method: object = "eagle2", **changes: object) -> Iterator[dict[str, Any]]:
        """The server's messages about one run; closing the iterator is leaving."""
        refused = self.join(prompt, method, **changes)
        if refused:
            yield {"msg": "refused", "refused": refused}
        else:
            yield from self.listen()

    def join(self, prompt: object, method: object = "eagle2", **changes: object) -> str:
        """Put a run into the queue; the reason where it is not taken."""
        body = {"fn_index": self._run_id, "data": self._values(prompt, method, changes), "session_hash": self.session}
        joined = self.http.post(f"{API}/queue/join", json=body | {"event_data": None, "trigger_id": None})
        if joined.status_code == 503:
            return str(joined.json()["detail"])
        joined.raise_for_status()
        return ""

    def listen(self) -> Iterator[dict[str, Any]]:
        """The server's messages to this tab until all its runs are over."""
        with self.http.stream("GET", f"{API}/queue/data", params={"session_hash": self.session}) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    message = json.loads(line[5:])
                    yield message
                    if message["msg"] in ("close_stream", "unexpected_error"):
                        return

    def ask(self, function: str, payload: object) -> httpx.Response:
        """Call one of the viewer's server functions."""
        body = {"component_id": self._viewer, "fn_name": function, "data": payload, "session_hash": self.session}
        return self.http.post(f"{API}/component_server", json=body)

    def trace(self, trace_id: str) -> dict[str, Any]:
        """The whole trace as the page would download it."""
        answer = json.loads(self.ask("get_export", json.dumps({"id": trace_id, "kind": "trace"})).json())
        return dict(json.loads(answer["text"]))

    def _values(self, prompt: object, method: object, changes: dict[str, object]) -> list[object]:
        values: dict[str, object] = dict.fromkeys(COMMON)
        values |= {"prompt": prompt, "method": method, "target": self.target, "system": "", "max_new_tokens": 16}
        values |= {f"sampling.{item.name}": item.default for item in SAMPLING}
        values |= {item.name: item.setting.default for item in fields(method_forms())}
        return list((values | changes).values())


def _json_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every string inside ``value`` that is a JSON object: the page's outputs are such strings."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _json_objects(item)
    elif isinstance(value, str) and value.startswith("{"):
        try:
            found = json.loads(value)
        except ValueError:
            return
        if isinstance(found, dict):
            yield found
