"""``watch`` reads servers on this machine, once or again, and says what it cannot read in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from explorer.__main__ import main
from tests.support import server_pages
from tests.support.chat_server import Behaviour, chat_server


@pytest.fixture
def server() -> Iterator[tuple[str, Behaviour]]:
    behaviour = Behaviour(pages={"/metrics": server_pages.VLLM, "/sglang": server_pages.SGLANG, "/other": "hello"})
    with chat_server(behaviour) as url:
        yield url, behaviour


def test_one_reading(server: tuple[str, Behaviour], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", server[0]]) == 0
    out = capsys.readouterr().out
    assert "Since the server's start" in out and "2.20" in out and "40.0 %" in out


def test_several_servers_are_told_apart(server: tuple[str, Behaviour], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", server[0], f"{server[0]}/sglang", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    rows = json.loads(line)["series"]
    assert [row["server"].split()[0] for row in rows] == ["vLLM", "vLLM", "SGLang"]
    assert rows[2]["tau"] == 3.0


def test_the_second_reading_says_what_came_between(
    server: tuple[str, Behaviour], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, behaviour = server

    def pass_time(seconds: float) -> None:
        assert seconds == 5
        behaviour.pages["/metrics"] = server_pages.VLLM.replace(" 100.0", " 110.0").replace(" 120.0", " 150.0")

    monkeypatch.setattr("explorer.cli.watch.time.sleep", pass_time)
    assert main(["watch", url, "--every", "5", "--times", "2", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["since"], second["since"]) == ("Since the server's start", "Since the reading before")
    assert second["series"][0]["tau"] == 4.0
    assert (second["series"][0]["drafted"], second["series"][0]["accepted"]) == (0.0, 30.0)
    assert first["seconds"] is None and 0 <= second["seconds"] < 5, "what rates are made of; the sleep was none"


def test_a_server_that_is_away_for_a_while_is_watched_on(
    server: tuple[str, Behaviour], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, behaviour = server
    pages = iter([{}, {"/metrics": server_pages.VLLM.replace(" 100.0", " 110.0").replace(" 120.0", " 150.0")}])
    monkeypatch.setattr("explorer.cli.watch.time.sleep", lambda _: setattr(behaviour, "pages", next(pages)))
    assert main(["watch", url, "--every", "5", "--times", "3", "--json"]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["since"] for line in captured.out.splitlines()] == [
        "Since the server's start",
        "Since the reading before",
    ]
    assert json.loads(captured.out.splitlines()[1])["series"][0]["tau"] == 4.0
    assert captured.err.startswith("left out: ") and captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ftp://host"], "give http"),
        (["http://127.0.0.1:9"], "cannot be read"),
        (["{url}/other"], "says nothing of drafts|no page in"),
        (["{url}/none"], "answers 404"),
        (["{url}", "--every", "0"], "--every must be"),
        (["{url}", "--times", "0"], "--times must be"),
        (["{url}", "--times", "2"], "--times needs --every"),
        (["http://host"] * 17, "at most 16"),
    ],
)
def test_mistakes_are_one_line(
    server: tuple[str, Behaviour], capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["watch", *(word.replace("{url}", server[0]) for word in arguments)]) == 2
    err = capsys.readouterr().err
    assert any(part in err for part in says.split("|")) and err.count("\n") == 1
