"""Prompt lookup against a plain search through the text, and against transformers' own."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from explorer.config import Sampling
from explorer.methods.prompt_lookup import PromptLookup, PromptLookupSettings
from explorer.sampling import Sampler
from explorer.target import Target
from tests.support.goldens import golden, golden_target, replay
from tests.support.tiny import tiny_target


@pytest.fixture(scope="module")
def target() -> Target:
    return tiny_target()


def begin(target: Target, prompt: list[int], ngram: int = 3, gamma: int = 10) -> PromptLookup:
    method = PromptLookup(target, None, PromptLookupSettings(ngram, gamma))
    target.start(0)
    method.start(prompt, target.prefill(prompt[:1]), Sampler(Sampling()))
    return method


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 4), st.integers(1, 6))
def test_guesses_are_those_of_transformers(target: Target, text: list[int], ngram: int, gamma: int) -> None:
    method = begin(target, text, ngram, gamma)
    guesses = method.draft(1).tree().token_list[1:]
    ids = torch.tensor([[*text, 1]])
    theirs = PromptLookupCandidateGenerator(
        num_output_tokens=gamma, max_matching_ngram_size=ngram, max_length=10**6
    ).get_candidates(ids)[0]
    assert guesses == theirs[0, ids.shape[1] :].tolist()


def test_the_longest_match_wins_then_the_earliest(target: Target) -> None:
    draft = begin(target, [5, 6, 7, 50, 9, 7, 51, 6, 7, 52, 5, 6]).draft(7)
    assert draft.tree().token_list == [7, 50, 9, 7, 51, 6, 7, 52, 5, 6, 7]  # up to the root itself
    assert draft.extra == {"matched": 3, "position": 3}
    draft = begin(target, [9, 7, 50, 7, 51], gamma=2).draft(7)
    assert draft.tree().token_list == [7, 50, 7]
    assert draft.tree().parent_list == [-1, 0, 1]


def test_nothing_found_is_nothing_drafted(target: Target) -> None:
    draft = begin(target, [1, 2, 3]).draft(4)
    assert len(draft.tree()) == 1
    assert draft.extra is None


def test_output_is_looked_up_too_and_forgotten_with_the_run() -> None:
    target, figures = golden_target("base_a"), golden("hf_greedy__base_a")
    run = next(run for run in figures["runs"] if run["mode"] == "noeos")
    prompt, method = figures["prompts"][run["prompt"]]["ids"], PromptLookup(target, None, PromptLookupSettings())
    output: list[int] = []
    for draft, _, verdict in replay(target, method, prompt, 40):
        output += [draft.tree().token_list[row] for row in verdict.path]
        assert method._text == [*prompt, *output][: len(method._text)]
    assert output[:200] == run["output"][: len(output)]
    assert len(output) > 60  # this target repeats itself
    method.start([1, 2], target.prefill([1]), Sampler(Sampling()))
    assert len(method.draft(output[0]).tree()) == 1
