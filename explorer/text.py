"""Between text and tokens: prompts through the chat template, and labels that show a token exactly as it is.

Labels are made from a token's bytes, once per id: no marker of the tokenizer's own (Ġ, ▁, Ċ) and no replacement
character is ever shown, and no invisible or reordering character reaches a screen.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import TemplateError

from explorer.errors import PromptError
from explorer.trace import Label, PromptRecord

CHAT_ROLES = ("system", "user", "assistant")

_NAMED = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}
_BROKEN = re.compile("[\udc80-\udcff]")  # how "surrogateescape" stands in for bytes that are not UTF-8
_PIECES = re.compile("[\udc80-\udcff]+| +|[^ \udc80-\udcff]+")
_SENTENCEPIECE_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# format, private use, unassigned, surrogates, controls, line and paragraph separators, other spaces
_HIDDEN_CATEGORIES = ("Cf", "Co", "Cn", "Cs", "Cc", "Zl", "Zp", "Zs")
_MARKS = ("Mn", "Me", "Mc")


class Labeler:
    """Labels of one tokenizer's tokens, each made once."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._added = tokenizer.added_tokens_decoder
        self._special = set(tokenizer.all_special_ids) | {i for i, token in self._added.items() if token.special}
        self._is_byte_level = _is_byte_level(tokenizer)
        self._labels: dict[int, Label] = {}

    def label(self, token_id: int) -> Label:
        """How a token is drawn; an id that the tokenizer does not know (padding of the vocabulary) shows its number."""
        if token_id not in self._labels:
            self._labels[token_id] = self._make(token_id)
        return self._labels[token_id]

    def labels(self, token_ids: Iterable[int]) -> dict[str, Label]:
        """The part of a trace's vocabulary that these ids need."""
        return {str(token_id): self.label(token_id) for token_id in token_ids}

    def token_bytes(self, token_id: int) -> bytes | None:
        """What the token adds to the text, None for an unknown id; special tokens give their name."""
        if token_id in self._added:
            return str(self._added[token_id].content).encode("utf-8", "surrogatepass")
        piece = self._tokenizer.convert_ids_to_tokens(token_id)
        if piece is None:
            return None
        return _byte_level_bytes(piece) if self._is_byte_level else _sentencepiece_bytes(piece)

    def _make(self, token_id: int) -> Label:
        data = self.token_bytes(token_id)
        if data is None:
            return Label(f"‹{token_id}›", "special")
        text = data.decode("utf-8", "surrogateescape")
        if token_id in self._special:
            name = text[1:-1] if len(text) > 2 and text[0] == "<" and text[-1] == ">" else text
            return Label(f"‹{show_text(name)}›", "special", data.hex())
        if not text or _BROKEN.search(text):
            return Label(show_text(text) or "⟨⟩", "bytes", data.hex())
        return Label(show_text(text), "space" if text.isspace() else "text", data.hex())


def show_text(text: str) -> str:
    """Text with everything that would not be seen spelled out: ``␣ ␣×4 ↵ ⇥ ␍ ⟨U+200B⟩ ⟨E2 96⟩``."""
    shown = "".join(_show_piece(piece) for piece in _PIECES.findall(text))
    return f"◌{shown}" if shown and unicodedata.category(shown[0]) in _MARKS else shown


def _show_piece(piece: str) -> str:
    if "\udc80" <= piece[0] <= "\udcff":
        return "⟨" + " ".join(f"{ord(char) - 0xDC00:02X}" for char in piece) + "⟩"
    if piece[0] == " " and len(piece) > 1:
        return f"␣×{len(piece)}"
    return "".join(_show_char(char) for char in piece)


def _show_char(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    is_selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    if is_selector or char == "\ufffd" or unicodedata.category(char) in _HIDDEN_CATEGORIES:
        return f"⟨U+{ord(char):04X}⟩"
    return char


def _is_byte_level(tokenizer: Any) -> bool:
    """Whether pieces spell bytes as GPT-2 does; else they are sentencepiece's, with ▁ for a space."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or backend.decoder is None:
        return hasattr(tokenizer, "byte_decoder")
    return '"ByteLevel"' in json.dumps(json.loads(backend.decoder.__getstate__()))


@cache
def _byte_of() -> dict[str, int]:
    """Character -> byte of byte-level BPE (GPT-2): printable Latin-1 stands for itself, the rest for 256 and up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _byte_level_bytes(piece: str) -> bytes:
    table = _byte_of()
    if all(char in table for char in piece):
        return bytes(table[char] for char in piece)
    return piece.encode("utf-8", "surrogatepass")


def _sentencepiece_bytes(piece: str) -> bytes:
    byte = _SENTENCEPIECE_BYTE.fullmatch(piece)
    return bytes([int(byte[1], 16)]) if byte else piece.replace("▁", " ").encode("utf-8", "surrogatepass")


def decode(tokenizer: Any, token_ids: Sequence[int], *, show_special: bool = False) -> str:
    """The text of these tokens; special ones are left out unless asked for."""
    return str(
        tokenizer.decode(list(token_ids), skip_special_tokens=not show_special, clean_up_tokenization_spaces=False)
    )


def render_prompt(
    tokenizer: Any,
    prompt: str | Sequence[Mapping[str, str]],
    system: str | None = None,
    use_chat_template: bool = True,
) -> PromptRecord:
    """A text (one user turn) or several messages as the ids the target reads.

    A target without a chat template reads a plain text as it is. Raises PromptError for an empty or unreadable prompt
    and for messages that no template renders. The length is checked by the engine, which knows the context.
    """
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else check_messages(prompt)
    if system:
        if messages[0]["role"] == "system":
            raise PromptError("there are two system prompts: give it with --system or in the messages, not both")
        messages = [{"role": "system", "content": system}, *messages]
    _check_text(*(message["content"] for message in messages))
    text = messages[-1]["content"]
    if not text.strip():
        raise PromptError("the prompt is empty: write something")
    if use_chat_template and tokenizer.chat_template:
        rendered = _apply_template(tokenizer, messages)
        # The template writes its own beginning-of-text token; the tokenizer must not add a second one.
        return PromptRecord(text, rendered, _encode(tokenizer, rendered, add_special_tokens=False))
    if len(messages) > 1:
        reason = "is switched off" if tokenizer.chat_template else "does not exist for this target"
        raise PromptError(
            f"system prompts and several messages need a chat template, which {reason}: use a plain prompt"
        )
    token_ids = _encode(tokenizer, text, add_special_tokens=True)
    return PromptRecord(text, decode(tokenizer, token_ids, show_special=True), token_ids)


def prompt_from_ids(tokenizer: Any, token_ids: Sequence[int], vocab_size: int) -> PromptRecord:
    """Ids as they are, past tokenizer and template; raises PromptError where one is outside the vocabulary."""
    wrong = [token for token in token_ids if not 0 <= token < vocab_size]
    if not token_ids or wrong:
        found = f"found {wrong[0]}" if wrong else "found none"
        raise PromptError(f"prompt ids must be whole numbers from 0 to {vocab_size - 1}, {found}")
    text, rendered = decode(tokenizer, token_ids), decode(tokenizer, token_ids, show_special=True)
    return PromptRecord(text, rendered, list(token_ids))


def check_messages(messages: object) -> list[dict[str, str]]:
    """Messages as ``{"role", "content"}`` of known roles, the last one not the assistant's; else PromptError."""
    if not isinstance(messages, list | tuple) or not messages:
        raise PromptError('messages must be a list of {"role": "user", "content": "..."} objects, at least one')
    checked = []
    for i, message in enumerate(messages):
        is_right = isinstance(message, Mapping) and set(message) == {"role", "content"}
        if not is_right or not all(isinstance(value, str) for value in message.values()):
            raise PromptError(f"messages[{i}] must have exactly two texts, role and content")
        if message["role"] not in CHAT_ROLES or (message["role"] == "system" and i > 0):
            allowed = f"{', '.join(CHAT_ROLES)}, system only first"
            raise PromptError(f"messages[{i}]: role {message['role']!r} is not allowed here; allowed: {allowed}")
        checked.append(dict(message))
    if checked[-1]["role"] != "user":
        raise PromptError("the last message must be the user's: the target answers it")
    return checked


def _apply_template(tokenizer: Any, messages: list[dict[str, str]]) -> str:
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except TemplateError as error:
        raise PromptError(f"the target's chat template refuses these messages: {error}") from error


def _encode(tokenizer: Any, text: str, *, add_special_tokens: bool) -> list[int]:
    return [int(token) for token in tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"]]


def _check_text(*texts: str) -> None:
    for text in texts:
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise PromptError("the prompt is not valid text: it holds bytes or half characters that are not UTF-8")
