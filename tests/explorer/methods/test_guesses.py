"""Random first guesses come from the prompt and the seed; guesses that begin alike become one trie."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from explorer.methods.guesses import merge_guesses, random_tokens
from explorer.tree import DraftTree


def test_random_tokens_are_the_prompts_and_the_seeds() -> None:
    drawn = random_tokens([5, 6, 7], 40, torch.Generator().manual_seed(3))
    assert set(drawn) == {5, 6, 7}
    assert drawn == random_tokens([5, 6, 7], 40, torch.Generator().manual_seed(3))
    assert drawn != random_tokens([5, 6, 7], 40, torch.Generator().manual_seed(4))
    assert random_tokens([5], 0, torch.Generator()) == []


def test_shared_beginnings_are_shared_rows() -> None:
    tokens, parents = merge_guesses(9, [[1, 2, 3], [1, 2, 4], [2, 2, 3], [1, 2, 3]])
    assert tokens == [9, 1, 2, 3, 4, 2, 2, 3]
    assert parents == [-1, 0, 1, 2, 2, 0, 5, 6]
    assert merge_guesses(9, []) == ([9], [-1])


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=8))
def test_the_paths_of_the_trie_are_the_guesses(guesses: list[list[int]]) -> None:
    tree = DraftTree.from_lists(*merge_guesses(7, guesses))
    beginnings = {tuple(guess[:length]) for guess in guesses for length in range(len(guess) + 1)}
    paths = [tuple(tree.token_list[row] for row in tree.path_to(node)[1:]) for node in range(len(tree))]
    assert sorted(paths) == sorted({(), *beginnings})
    for row in range(len(tree)):
        siblings = [tree.token_list[child] for child in tree.children(row)]
        assert len(siblings) == len(set(siblings))
