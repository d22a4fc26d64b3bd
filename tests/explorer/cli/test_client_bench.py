"""``client-bench`` from end to end against a server on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.__main__ import main
from tests.explorer.test_client_bench import SPECULATIVE
from tests.support.chat_server import Behaviour, chat_server


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "q.jsonl"
    lines = [{"question_id": n, "category": "odd" if n % 2 else "even", "turns": [f"Question {n}?"]} for n in range(5)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def client_bench(url: str, questions: Path, out: Path, *more: str) -> int:
    command = ["client-bench", "--url", url, "--model", "tiny", "--questions", str(questions), "--out", str(out)]
    return main([*command, *more])


def test_the_report_is_the_benchmarks(questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(Behaviour(tail=SPECULATIVE)) as url:
        assert client_bench(url, questions, tmp_path / "a", "--concurrency", "2") == 0
        assert client_bench(url, questions, tmp_path / "b", "--concurrency", "2") == 0
    report = json.loads((tmp_path / "a" / "report.json").read_text(encoding="utf-8"))
    assert report["schema"] == "draft-tree-bench"
    row = report["methods"]["endpoint"]
    assert (row["tau"], row["draft_acceptance_rate"], row["acceptance_histogram"]) == (
        1.5,
        pytest.approx(1 / 6),
        [5, 5],
    )
    assert (row["num_prompts"], row["num_equal"], row["client"]["num_tokens"]) == (5, None, 20)
    assert row["client"]["tokens_per_piece"] == pytest.approx(4 / 3)
    assert set(row["by_category"]) == {"even", "odd"}
    markdown = capsys.readouterr().out
    for told in ("# Benchmark: tiny, 5 prompts", "first token ms", "requests/s", "p99", "## Category: odd"):
        assert told in markdown
    assert "speedup" not in markdown.split("Drafts")[0].split("## The endpoint")[0].split("- ")[0]
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert "ms between pieces" in page and "Speedup over plain decoding" not in page
    reports = [str(tmp_path / name / "report.json") for name in ("a", "b")]
    assert main(["bench", "compare", *reports]) == 0
    assert "| endpoint" in capsys.readouterr().out


def test_failed_requests_are_told_and_asked_again(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behaviour = Behaviour(fails={"Question 3?": 429})
    with chat_server(behaviour) as url:
        assert client_bench(url, questions, tmp_path / "out") == 2
        err = capsys.readouterr().err
        assert "question 3: 429 Too Many Requests" in err and "1 request failed" in err
        assert json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["num_questions"] == 4
        behaviour.fails.clear()
        assert client_bench(url, questions, tmp_path / "out") == 0
    assert json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["num_questions"] == 5


def test_the_key_is_read_from_the_environment(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    behaviour = Behaviour()
    monkeypatch.setenv("OUR_KEY", "sesame")
    with chat_server(behaviour) as url:
        assert client_bench(url, questions, tmp_path / "out", "--key-from", "OUR_KEY") == 0
    assert behaviour.headers[-1]["authorization"] == "Bearer sesame"
    written = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").iterdir())
    assert "sesame" not in written + capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--url", "ftp://host"], "give http"),
        (["--concurrency", "0"], "--concurrency must be"),
        (["--max-new-tokens", "0"], "--max-new-tokens must be"),
        (["--temperature", "nan"], "--temperature must be"),
        (["--timeout", "0"], "--timeout must be"),
        (["--extra", "{"], "--extra is not JSON"),
        (["--extra", "[]"], "--extra must be a JSON object"),
        (["--key-from", "NO_SUCH_KEY"], "holds no key"),
        (["--lane", " "], "--lane must be"),
        (["--url", "http://127.0.0.1:9"], "does not answer as expected"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], says: str
) -> None:
    assert client_bench("http://127.0.0.1:9", questions, tmp_path / "out", *more) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "measuring" not in line and line.strip()]
    assert len(lines) == 1 and says in lines[0]
    assert not (tmp_path / "out").exists()
