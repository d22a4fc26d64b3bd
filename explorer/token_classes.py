"""What kind of text a token is, from its text and its place: the classes by which acceptance is told.

Exactly one class a token, the first that fits in the order of TOKEN_CLASSES; each is one function below. Texts are read
back from the labels of a trace, so no tokenizer is needed. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from explorer.trace import Label, Trace

TOKEN_CLASSES = ("indentation", "boilerplate", "digits", "punctuation", "names", "words")
CLASS_WORDS = {
    "indentation": "line ends, and the spaces and tabs that lead a line",
    "boilerplate": "chat markers, and tokens that repeat: the same four in a row stood before, in prompt or output",
    "digits": "at least one digit and no letter",
    "punctuation": "neither letter nor digit",
    "names": "parts of identifiers and of proper names",
    "words": "every other piece with letters",
}
REPEAT = 4  # tokens in a row that make a repetition
REACH = 64  # characters on each side in which a word's ends are looked for
_SHOWN = {"␣": " ", "↵": "\n", "⇥": "\t", "␍": "\r"}
_SPACES = re.compile(r"␣×(\d{1,4})")
_HIDDEN = re.compile(r"⟨U\+[0-9A-F]{4,6}⟩")
_WORD = re.compile(r"\w*")
_SENTENCE_ENDS = ".!?:;\n*#-•>\"“'‘("


def output_classes(trace: Trace) -> list[str]:
    """The class of every output token, in order."""
    output = trace.output.token_ids
    texts = [token_text(trace.vocab, token) for token in output]
    repeats = repeated(trace.prompt.token_ids, output)
    whole, start, classes = "".join(texts), 0, []
    for token, text, is_repeat in zip(output, texts, repeats, strict=True):
        label = trace.vocab.get(str(token))
        is_marker = label is not None and label.kind == "special"
        classes.append(classify(text, whole, start, is_boilerplate=is_repeat or is_marker))
        start += len(text)
    return classes


def classify(text: str, whole: str, start: int, *, is_boilerplate: bool) -> str:
    """One of TOKEN_CLASSES for the token ``text`` that begins at ``start`` of the text ``whole``."""
    if text and is_indentation(text, whole[max(start - REACH, 0) : start]):
        return "indentation"
    if is_boilerplate:
        return "boilerplate"
    if is_digits(text):
        return "digits"
    if is_punctuation(text):
        return "punctuation"
    return "names" if is_name(text, whole, start) else "words"


def is_indentation(text: str, before: str) -> bool:
    """Whitespace alone that holds a line end, or with nothing but whitespace before it on its line."""
    line = before.rpartition("\n")[2]
    return text.isspace() and ("\n" in text or ("\n" in before and not line.strip()))


def is_digits(text: str) -> bool:
    """At least one digit, no letter."""
    return any(char.isdigit() for char in text) and not any(char.isalpha() for char in text)


def is_punctuation(text: str) -> bool:
    """Neither letter nor digit; a lone space inside a line is among them."""
    return not any(char.isalnum() for char in text)


def is_name(text: str, whole: str, start: int) -> bool:
    """Part of an identifier or a proper name, judged by the word that the token is part of.

    An identifier has an underscore, letters and digits mixed, or a capital after its first letter; or a bracket opens
    right behind it, or a dot binds it to another word. A proper name has a capital where no sentence begins.
    """
    first = next((i for i, char in enumerate(text) if char.isalnum() or char == "_"), 0)
    begin, end = _word_around(whole, start + first)
    word, before, after = whole[begin:end], whole[max(begin - REACH, 0) : begin], whole[end : end + 2]
    letters = [char for char in word if char.isalpha()]
    if "_" in word or len(letters) < len(word) or any(char.isupper() for char in word[1:]):
        return bool(letters)
    if after[:1] in ("(", "[") or (after[:1] == "." and after[1:2].isalpha()):
        return True
    if before[-1:] == "." and before[-2:-1].isalnum():
        return True
    said = before.rstrip(" \t")
    return word[:1].isupper() and len(word) > 1 and said[-1:] not in ("", *_SENTENCE_ENDS)


def _word_around(whole: str, place: int) -> tuple[int, int]:
    """Begin and end of the run of letters, digits and underscores around a character."""
    left = whole[max(place - REACH, 0) : place][::-1]
    back, ahead = _WORD.match(left), _WORD.match(whole[place : place + REACH])
    return place - len(back[0] if back else ""), place + len(ahead[0] if ahead else "")


def repeated(prompt: Sequence[int], output: Sequence[int]) -> list[bool]:
    """For each output token whether it and the ones before it, REPEAT in all, stood so before in prompt or output."""
    tokens, seen = [*prompt, *output], set[tuple[int, ...]]()
    found = [False] * len(tokens)
    for end in range(REPEAT, len(tokens) + 1):
        piece = tuple(tokens[end - REPEAT : end])
        found[end - 1] = piece in seen
        seen.add(piece)
    return found[len(prompt) :]


def token_text(vocab: Mapping[str, Label], token: int) -> str:
    """What a token adds to the text, read back from its label; nothing for chat markers, U+FFFD for broken bytes."""
    label = vocab.get(str(token))
    if label is None or label.kind == "special":
        return ""
    return "\ufffd" if label.kind == "bytes" else "".join(_read_back(label.label))


def _read_back(label: str) -> Iterator[str]:
    rest = _SPACES.sub(lambda found: "␣" * int(found[1]), _HIDDEN.sub("", label.removeprefix("◌")))
    return (_SHOWN.get(char, char) for char in rest)
