"""Question files: Spec-Bench and MT-bench lines (question_id, category, turns), or plain text, one prompt a line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import PromptError


@dataclass(frozen=True)
class Question:
    """One prompt to measure: the first turn of a question."""

    id: str
    category: str
    text: str


def read_questions(path: Path) -> list[Question]:
    """The questions of a file in its order; PromptError names the line that cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise PromptError(f"the questions {path} cannot be read: {reason}") from error
    is_jsonl = path.suffix in (".jsonl", ".json")
    read = _from_json if is_jsonl else _from_text
    questions = [read(line, f"{path}:{number}", number) for number, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise PromptError(f"the questions {path} hold no prompt: give JSON lines with turns, or a prompt a line")
    if len({question.id for question in questions}) < len(questions):
        raise PromptError(f"the questions {path} have a question_id twice: give each its own")
    return questions


def select(
    questions: list[Question], *, categories: Collection[str] = (), max_chars: int = 0, every: int = 1, limit: int = 0
) -> list[Question]:
    """Those of the categories (none: all) of at most ``max_chars`` characters (0: any), every n-th, then the first.

    Raises PromptError where nothing is left, naming the categories there are.
    """
    known = sorted({question.category for question in questions})
    if unknown := sorted(set(categories) - set(known)):
        raise PromptError(f"no question is of category {', '.join(unknown)}; there are: {', '.join(known)}")
    fitting = [
        question
        for question in questions
        if (not categories or question.category in categories) and (not max_chars or len(question.text) <= max_chars)
    ]
    chosen = fitting[::every][: limit or None]
    if not chosen:
        raise PromptError("no question is left: allow longer ones or more categories")
    return chosen


def digest(questions: Iterable[Question]) -> str:
    """What tells two choices of questions apart: SHA-256 over their ids and texts, in order."""
    told = json.dumps([[question.id, question.text] for question in questions])
    return hashlib.sha256(told.encode()).hexdigest()


def _from_json(line: str, where: str, _number: int) -> Question:
    try:
        raw = json.loads(line)
        turn: object = raw["turns"][0] if isinstance(raw["turns"], list) else None
        question_id, category = str(raw["question_id"]), str(raw.get("category", "all"))
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise PromptError(f"{where}: expected JSON with question_id, category and turns ({error!r})") from error
    if not isinstance(turn, str) or not turn.strip() or any("\ud800" <= char <= "\udfff" for char in turn):
        raise PromptError(f"{where}: turns must be a list that begins with text")
    return Question(question_id, category, turn)


def _from_text(line: str, _where: str, number: int) -> Question:
    return Question(str(number), "all", line.strip())
