"""Question files: both forms are read, wrong lines are named, choosing is said when it leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from explorer.errors import PromptError
from explorer.questions import Question, digest, read_questions, select

MANY = [Question(str(i), "maths" if i % 2 else "chat", "x" * i) for i in range(1, 9)]


def write(tmp_path: Path, name: str, *lines: str) -> Path:
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_spec_bench_lines_give_their_first_turn(tmp_path: Path) -> None:
    line = json.dumps({"question_id": 82, "category": "writing", "turns": ["First.", "Second."], "reference": []})
    assert read_questions(write(tmp_path, "q.jsonl", line, "")) == [Question("82", "writing", "First.")]


def test_plain_text_is_a_prompt_a_line(tmp_path: Path) -> None:
    assert read_questions(write(tmp_path, "q.txt", "One", "", "  Two ")) == [
        Question("1", "all", "One"),
        Question("3", "all", "Two"),
    ]


@pytest.mark.parametrize(
    "line", ["{", "[]", "7", '{"turns": ["a"]}', '{"question_id": 1, "turns": []}', '{"question_id": 1, "turns": [5]}']
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(PromptError, match=r"q\.jsonl:1"):
        read_questions(write(tmp_path, "q.jsonl", line))


@pytest.mark.parametrize("turns", ["hello", {"0": "a"}, ["\ud800"], [""], None])
def test_turns_must_begin_with_text(tmp_path: Path, turns: object) -> None:
    with pytest.raises(PromptError, match=r"q\.jsonl:1"):
        read_questions(write(tmp_path, "q.jsonl", json.dumps({"question_id": 1, "turns": turns})))


def test_only_line_feeds_end_a_line(tmp_path: Path) -> None:
    line = json.dumps({"question_id": 1, "turns": ["a\u2028b"]}, ensure_ascii=False)
    assert read_questions(write(tmp_path, "q.jsonl", line))[0].text == "a\u2028b"
    assert len(read_questions(write(tmp_path, "q.txt", "one\x0cpage"))) == 1


def test_a_question_id_given_twice_is_refused(tmp_path: Path) -> None:
    line = json.dumps({"question_id": 1, "turns": ["a"]})
    with pytest.raises(PromptError, match="twice"):
        read_questions(write(tmp_path, "q.jsonl", line, line))


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="cannot be read"):
        read_questions(tmp_path / "none.txt")
    with pytest.raises(PromptError, match="hold no prompt"):
        read_questions(write(tmp_path, "q.txt", "", "  "))


def test_choosing() -> None:
    assert [q.id for q in select(MANY, max_chars=5)] == ["1", "2", "3", "4", "5"]
    assert [q.id for q in select(MANY, every=3)] == ["1", "4", "7"]
    assert [q.id for q in select(MANY, categories=["chat"], limit=2)] == ["2", "4"]
    with pytest.raises(PromptError, match="there are: chat, maths"):
        select(MANY, categories=["poetry"])
    with pytest.raises(PromptError, match="no question is left"):
        select(MANY[3:], max_chars=1)


def test_a_digest_tells_ids_and_texts_apart() -> None:
    one = [Question("1", "all", "a"), Question("2", "all", "b")]
    assert digest(one) == digest([Question("1", "chat", "a"), Question("2", "all", "b")])
    assert len({digest(one), digest(one[::-1]), digest([Question("1", "all", "b"), one[1]])}) == 3
