"""Guessed continuations without a drafter: where they begin, and how several of them become one tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch


def random_tokens(prompt_ids: Sequence[int], count: int, generator: torch.Generator) -> list[int]:
    """``count`` tokens of the prompt, drawn at random with repetition: a first guess where nothing is known.

    Source: `lade/decoding.py` of hao-ai-lab/LookaheadDecoding starts its window so, from an unseeded generator.
    """
    return [prompt_ids[i] for i in torch.randint(len(prompt_ids), (count,), generator=generator).tolist()]


def merge_guesses(root: int, guesses: Iterable[Sequence[int]]) -> tuple[list[int], list[int]]:
    """(tokens, parents) of the trie below ``root`` that holds every guess, row 0 the root, rows in order of first use.

    Guesses that begin alike share their beginning, so siblings are always distinct tokens.
    """
    tokens, parents = [root], [-1]
    children: dict[tuple[int, int], int] = {}
    for guess in guesses:
        row = 0
        for token in guess:
            if (row, token) not in children:
                children[row, token] = len(tokens)
                tokens.append(token)
                parents.append(row)
            row = children[row, token]
    return tokens, parents
