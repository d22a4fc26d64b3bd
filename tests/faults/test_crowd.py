"""The real server and many visitors at once: nothing is mixed up, nobody sees an error, and it ends in order.

The short tests belong to every run of the suite; ``-m soak`` has the same for minutes, and prints what it held.
"""

from __future__ import annotations

import json
import random
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from explorer.trace import from_json
from tests.support.goldens import golden_target
from tests.support.served import TARGET, Served
from tests.support.tiny import greedy
from tests.support.visitor import Outcome, Visitor

METHODS = ("eagle2", "lookahead", "jacobi", "prompt_lookup", "autoregressive")
WORDS = "count the red cats and dogs near old houses while seven birds sing".split()
SECRET = "xylophone"  # in every prompt, and nowhere in what the operator gets to read
FULL = "Queue is full"
MAX_GROWTH = 150 * 2**20  # of a warm server: its bounded store fills meanwhile


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    arguments = ("--metrics", "--log-format", "json", "--max-waiting", "2", "--max-kept-mb", "16")
    with Served(*arguments, "--max-new-tokens", "100", "--grace", "1") as server:
        yield server


@dataclass
class Crowd:
    """What many visitors saw; filled by their threads."""

    outcomes: list[tuple[str, str, Outcome]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    traces: list[tuple[tuple[int, ...], list[int]]] = field(default_factory=list)
    num_left: int = 0

    def visit(self, server: Served, seed: int, until: float) -> None:
        """One visitor: run after run with a prompt of its own, now and then leaving in the middle."""
        chance = random.Random(seed)
        visitor = Visitor(server.url, TARGET)
        try:
            while time.monotonic() < until:
                prompt = f"{SECRET} {seed} " + " ".join(chance.choices(WORDS, k=chance.randint(2, 6)))
                method = chance.choice(METHODS)
                if chance.random() < 0.15:
                    leave(visitor, prompt, method)
                    self.num_left += 1
                    visitor = Visitor(server.url, TARGET)
                    continue
                outcome = visitor.run(prompt, method)
                self.outcomes.append((prompt, method, outcome))
                if outcome.refused:
                    time.sleep(chance.uniform(0.2, 1.0))
                else:
                    self.check(visitor, prompt, outcome)
        except Exception as error:  # noqa: BLE001 - told by the test's own thread
            self.errors.append(f"visitor {seed}: {error!r}")

    def check(self, visitor: Visitor, prompt: str, outcome: Outcome) -> None:
        """The visitor's own trace, whole, with its own prompt and its own greedy output."""
        if not outcome.last.startswith("Done"):
            self.errors.append(f"{outcome.last!r} {outcome.errors}")
            return
        if not outcome.handles:
            self.errors.append("no trace")
            return
        raw = visitor.trace(outcome.handles[-1]["id"])
        trace = from_json(json.dumps(raw))
        if trace.prompt.text != prompt:
            self.errors.append(f"asked {prompt!r}, got the trace of {trace.prompt.text!r}")
        if trace.baseline is not None and trace.baseline.output_equal is not True:
            self.errors.append(f"{trace.method} parted from its baseline")
        self.traces.append((tuple(trace.prompt.token_ids), list(trace.output.token_ids)))


def leave(visitor: Visitor, prompt: str, method: str) -> None:
    """Ask for a long run and vanish: before it begins, or while it decodes."""
    messages = visitor.messages(prompt, method, max_new_tokens=100)
    for message in messages:
        if message["msg"] in ("process_generating", "refused"):
            break
    messages.close()  # type: ignore[attr-defined]
    visitor.http.close()


def crowd(server: Served, num_visitors: int, seconds: float) -> Crowd:
    """Visitors at once for some seconds."""
    seen, until = Crowd(), time.monotonic() + seconds
    threads = [threading.Thread(target=seen.visit, args=(server, seed, until)) for seed in range(num_visitors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 240)
        assert not thread.is_alive(), "a visitor hangs"
    return seen


def check_crowd(server: Served, seen: Crowd) -> str:
    """Nothing went wrong; what was held, in one line."""
    assert seen.errors == []
    refused = [outcome.refused for _, _, outcome in seen.outcomes if outcome.refused]
    assert all(text.startswith(FULL) for text in refused), set(refused)
    target, known = golden_target(TARGET), dict[tuple[int, ...], list[int]]()
    for ids, output in seen.traces:
        reference = known.setdefault(ids, greedy(target, list(ids), 16) if ids not in known else known[ids])
        assert output == reference[: len(output)], "a trace that is not its own greedy output"
    assert server.wait_until_idle(60) < 60
    log = server.log()
    assert "Traceback" not in log
    assert SECRET not in log
    assert SECRET not in server.metrics()
    waits = [one.seconds_to_first_token for _, _, one in seen.outcomes if one.seconds_to_first_token]
    return (
        f"{len(seen.traces)} runs checked, {len(refused)} times queue full, {seen.num_left} left in the middle, "
        f"median wait {statistics.median(waits):.1f} s, longest {max(waits):.1f} s"
    )


def test_a_small_crowd(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    seen = crowd(served, num_visitors=12, seconds=8)
    told = check_crowd(served, seen)
    assert len(seen.traces) >= 5
    with capsys.disabled():
        print(f"\ncrowd of 12 for 8 s: {told}")


def test_a_visitor_who_vanishes_frees_the_device(served: Served) -> None:
    for _ in range(3):
        leave(Visitor(served.url, TARGET), f"{SECRET} again and again", "autoregressive")
    assert served.wait_until_idle(30) < 30
    assert Visitor(served.url, TARGET).run(f"{SECRET} and on").last.startswith("Done")


def test_the_operator_reads_figures_and_no_prompt(served: Served) -> None:
    Visitor(served.url, TARGET).run(f"{SECRET} counts")
    metrics = served.metrics()
    assert 'draft_tree_spec_decode_num_drafts_total{method="eagle2"}' in metrics
    assert "draft_tree_kept_traces" in metrics
    lines = [json.loads(line) for line in served.log().splitlines() if line.startswith("{")]
    ended = [line for line in lines if line["event"] == "run ended"]
    assert ended[-1]["method"] == "eagle2"
    assert ended[-1]["num_tokens"] >= 1
    assert SECRET not in served.log() + metrics


def test_one_tab_may_not_fill_the_line(served: Served) -> None:
    visitor = Visitor(served.url, TARGET)
    for number in range(4):
        assert not visitor.join(f"{SECRET} {number}", "autoregressive")
    ended = [one for one in visitor.listen() if one["msg"] == "process_completed"]
    assert [one["success"] for one in ended] == [True] * 4
    refused = [one for one in ended if "You have 2 runs waiting or running here already" in json.dumps(one)]
    assert len(refused) == 2


@pytest.mark.parametrize(
    "payload", [None, 7, "", "{", "[]", "{}", '{"id": "../../etc/passwd"}', '{"id": 1e999}', "[" * 5000, {"a": [1]}]
)
@pytest.mark.parametrize("function", ["get_view", "get_export", "get_link", "get_insight"])
def test_server_functions_answer_hostile_json_with_a_sentence(served: Served, function: str, payload: object) -> None:
    answer = Visitor(served.url, TARGET).ask(function, payload)
    assert answer.status_code == 200
    assert json.loads(answer.json()).keys() == {"error"}


def test_sigterm_ends_runs_and_exits_with_0(served: Served) -> None:
    assert "Traceback" not in served.log()
    visitor = Visitor(served.url, TARGET)
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(visitor.run(f"{SECRET} to the end", "autoregressive", max_new_tokens=100))
    )
    thread.start()
    while not served.health()["device"]["is_busy"]:
        time.sleep(0.02)
    code, seconds = served.end()
    assert (code, seconds < 30) == (0, True), seconds
    thread.join(30)
    log = served.log()
    assert '"event": "stopped", "is_idle": true' in log
    assert f"Open {served.url}" in log and "launch()" not in log, "where the page is, and no advice for programmers"
    assert "Traceback" not in log


@pytest.mark.soak
def test_a_class_for_three_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    with Served("--metrics", "--log-format", "json", "--max-kept-mb", "16", "--max-new-tokens", "100") as server:
        crowd(server, num_visitors=40, seconds=30)  # fills the store and every cache
        server.wait_until_idle(60)
        before = server.memory()
        seen = crowd(server, num_visitors=40, seconds=180)
        told = check_crowd(server, seen)
        growth = server.memory() - before
        assert growth < MAX_GROWTH, f"{growth / 2**20:.0f} MiB more than before"
        assert server.end()[0] == 0
    with capsys.disabled():
        print(f"\ncrowd of 40 for 180 s: {told}, memory grew by {growth / 2**20:.0f} MiB")
