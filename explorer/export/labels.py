"""Token labels in a monospace font without a browser: how wide they are, and where they may be cut."""

from __future__ import annotations

import unicodedata

ZERO_WIDTH_JOINER = "\u200d"
EMOJI_STYLE = "\ufe0f"
MAX_CHARS_PER_CELL = 16  # a joined family of emoji has eleven


def clusters(text: str) -> list[str]:
    """The text in pieces that must not be cut: a character with its marks, a joined emoji, a flag.

    The extended grapheme clusters of Unicode's annex 29 as far as the standard library knows them: scripts whose
    letters join (Hangul jamo) may be cut between two letters.
    """
    pieces: list[str] = []
    for char in text:
        if pieces and _continues(pieces[-1], char):
            pieces[-1] += char
        else:
            pieces.append(char)
    return pieces


def num_cells(text: str) -> int:
    """Width in monospace cells: East Asian wide characters and emoji count two, marks none."""
    return sum(_cells(piece) for piece in clusters(text))


def shorten(text: str, room: int) -> str:
    """The text cut in the middle to ``room`` cells, both ends kept."""
    reach = MAX_CHARS_PER_CELL * room
    if len(text) > 2 * reach:
        text = text[:reach] + text[-reach:]  # the middle goes anyway: a label may be very long
    if num_cells(text) <= room:
        return text
    pieces, head, tail = clusters(text), "", ""
    room -= 1  # the ellipsis
    while pieces:
        is_heads_turn = len(head) <= len(tail)
        piece = pieces.pop(0 if is_heads_turn else -1)
        room -= _cells(piece)
        if room < 0:
            break
        head, tail = (head + piece, tail) if is_heads_turn else (head, piece + tail)
    return f"{head}…{tail}"


def _continues(piece: str, char: str) -> bool:
    is_joined = char == ZERO_WIDTH_JOINER or piece.endswith(ZERO_WIDTH_JOINER)
    is_modifier = "\U0001f3fb" <= char <= "\U0001f3ff" or "\U000e0020" <= char <= "\U000e007f"
    is_second_of_flag = len(piece) == 1 and _is_regional(piece) and _is_regional(char)
    return is_joined or is_modifier or is_second_of_flag or unicodedata.category(char).startswith("M")


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _cells(piece: str) -> int:
    is_wide = unicodedata.east_asian_width(piece[0]) in "WF" or _is_regional(piece[0]) or EMOJI_STYLE in piece
    return 2 if is_wide else 1
