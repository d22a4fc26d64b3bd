"""Lookahead against the original's figures, step by step; the pool and the window against their definitions."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from explorer.config import Sampling
from explorer.methods.lookahead import Lookahead, LookaheadSettings, NgramPool, Window
from explorer.sampling import Sampler
from explorer.target import Target
from explorer.tree import WINDOW, DraftTree
from explorer.verify import verify_greedy
from tests.support.goldens import golden, golden_target, replay
from tests.support.tiny import greedy, tiny_target

FIGURES = golden("lookahead__base_a")
RUNS = {f"{run['prompt']}-{run['mode']}": run for run in FIGURES["runs"]}
SHORT = [name for name, run in RUNS.items() if run["mode"] == "eos"]


def begin(target: Target, prompt: list[int], settings: LookaheadSettings) -> Lookahead:
    """The original's first step reads the last prompt token with the window, so the text before it is committed."""
    method = Lookahead(target, None, settings)
    target.start(0)
    output: Any = target.prefill(prompt[:-1]) if len(prompt) > 1 else None
    method.start(prompt[:-1] or prompt, output, Sampler(Sampling()))
    return method


def choices_along(tree: DraftTree, choices: list[int], guess: list[int]) -> list[int]:
    """The target's argmaxes after the tokens of one guess, found in the trie."""
    row, found = 0, []
    for token in guess:
        drafted = [child for child in tree.children(row) if tree.roles[child] != WINDOW]
        row = next(child for child in drafted if tree.token_list[child] == token)
        found.append(choices[row])
    return found


@pytest.mark.parametrize("name", RUNS)
def test_every_recorded_step_equals_the_original(name: str) -> None:
    """Each step is given as the original had it, because it forgets the bonus token after a full match."""
    target, run = golden_target("base_a"), RUNS[name]
    prompt = FIGURES["prompts"][run["prompt"]]["ids"]
    method = begin(target, prompt, LookaheadSettings(FIGURES["window"], FIGURES["level"], FIGURES["guess_set"]))
    assert method._window is not None
    method._window.rows = [run["steps"][0]["window"][0]]  # drawn from Python's unseeded random there
    for step in run["steps"]:
        draft = method.draft(step["input"])
        tree = draft.tree()
        assert draft.extra is not None
        assert draft.extra["window_tokens"] == [row for row in step["window"] if row is not None]
        assert draft.extra["guess_tokens"] == step["guesses"]
        output = target.forward(tree)
        choices = output.logits.argmax(dim=-1).tolist()
        assert choices[0] == step["next"]
        assert choices[-len(step["window_argmax"]) :] == step["window_argmax"]
        assert [choices_along(tree, choices, guess) for guess in step["guesses"]] == step["guess_argmax"]
        verdict, kept = verify_greedy(tree, output.logits), len(step["committed"])
        ours = [*verdict.accepted_tokens, verdict.next_token]
        assert ours[:kept] == step["committed"]
        is_last = step is run["steps"][-1]  # cut by a stop or the limit
        assert len(ours) == kept or is_last or (kept, len(ours)) == (FIGURES["level"] - 1, FIGURES["level"])
        verdict = dataclasses.replace(
            verdict, path=verdict.path[:kept], accepted_tokens=tuple(ours[: kept - 1]), next_token=ours[kept - 1]
        )
        target.commit(verdict.path)
        method.update(verdict, output)


@pytest.mark.parametrize("pool_from_prompt", [False, True])
@pytest.mark.parametrize("name", SHORT)
def test_the_output_is_the_originals(name: str, pool_from_prompt: bool) -> None:
    target, run = golden_target("base_a"), RUNS[name]
    method = Lookahead(target, None, LookaheadSettings(pool_from_prompt=pool_from_prompt))
    output: list[int] = []
    prompt, num_tokens = FIGURES["prompts"][run["prompt"]]["ids"], len(run["output"])
    for draft, _, verdict in replay(target, method, prompt, run["n_steps"] + 4):
        output += [draft.tree().token_list[row] for row in verdict.path]
    assert output[:num_tokens] == run["output"][: len(output)]
    assert len(output) > 0.9 * num_tokens  # no more passes than the original needs, but for the other first window


@pytest.mark.parametrize("settings", [(1, 3, 1), (2, 3, 2), (7, 5, 7), (3, 7, 4), (15, 4, 15)], ids=str)
def test_the_windows_rows_see_what_the_paper_draws(settings: tuple[int, int, int]) -> None:
    """Row 0 is causal; token j of row l sees the root, row 0 before column j, and column j of the rows between."""
    width, level, _ = settings
    target = tiny_target()
    method = Lookahead(target, None, LookaheadSettings(*settings))
    for draft, _, _ in replay(target, method, [3, 1, 4, 1, 5], 12):
        tree, window = draft.tree(), method._window
        assert window is not None
        sizes = [len(row) for row in window.rows]
        assert not window.is_full or sizes == [width - 1] + [width] * (level - 2)
        start = len(tree) - sum(sizes)
        first = [start + sum(sizes[:row]) for row in range(len(sizes))]
        for number, size in enumerate(sizes):
            for j in range(size):
                row = first[number] + j
                seen = {0, *range(start, start + j), *(first[above] + j for above in range(1, number + 1))}
                assert set(tree.tree_mask[row].nonzero().flatten().tolist()) == (seen | {row})
                assert int(tree.depths[row]) == number + j + (number == 0)
        assert window.depth == int(tree.depths[start:].max())
        assert tree.roles[start:].eq(WINDOW).all() and not tree.roles[:start].eq(WINDOW).any()


def test_the_pool_keeps_the_newest_of_each_token() -> None:
    pool = NgramPool(2)
    for ngram in ([1, 2, 3], [1, 4, 5], [2, 0, 0], [1, 2, 3], [1, 6, 7]):
        pool.add(ngram)
    assert pool.after(1) == [[2, 3], [6, 7]]  # seen again, 2 3 outlived 4 5
    assert pool.after(2) == [[0, 0]]
    assert pool.after(3) == []
    assert pool.size == 3


def test_a_full_windows_columns_are_ngrams() -> None:
    window = Window(3, [10, 11, 12])
    window.shift([20, 21, 22])
    window.shift([30, 31, 32])
    assert window.rows == [[12], [21, 22], [31, 32]]
    assert window.ngrams(9, [40, 41]) == [[9, 21, 31, 40], [12, 22, 32, 41]]
    window.shift([40, 41])
    assert window.rows == [[22], [31, 32], [40, 41]]


def test_the_text_feeds_the_pool_where_asked() -> None:
    target, prompt, root = tiny_target(), [1, 2, 3, 4, 5, 1, 2, 3], 9
    method = Lookahead(target, None, LookaheadSettings(2, 3, 4, True))
    method.start(prompt, target.prefill([1]), Sampler(Sampling()))
    assert method._pool.after(1) == [[2, 3]]
    assert method._pool.after(3) == [[4, 5]]
    method.draft(root)
    assert method._pool.after(2) == [[3, 4], [3, root]]
    plain = Lookahead(target, None, LookaheadSettings(2, 3, 4))
    plain.start(prompt, target.prefill([1]), Sampler(Sampling()))
    assert plain._pool.size == 0


def test_an_earlier_run_leaves_nothing_behind() -> None:
    target = tiny_target()
    method = Lookahead(target, None, LookaheadSettings())
    first = [draft.extra for draft, _, _ in replay(target, method, [7, 8], 15)]
    list(replay(target, method, [9, 9, 1], 15))
    assert [draft.extra for draft, _, _ in replay(target, method, [7, 8], 15)] == first


def test_where_the_context_ends_the_window_is_left_out() -> None:
    target = tiny_target(max_position_embeddings=32)
    prompt = [(5 * i) % 61 for i in range(12)]
    expected, output = greedy(target, prompt, 19), list[int]()
    method = Lookahead(target, None, LookaheadSettings(4, 3, 4))
    target.start(0)
    for draft, _, verdict in replay(target, method, prompt, 19):
        output += [draft.tree().token_list[row] for row in verdict.path]
        deepest = int(draft.tree().depths[draft.tree().roles == WINDOW].max()) if method._window else 0
        assert deepest <= 30 - target.length
        if target.length >= 28:
            break
    assert method._window is None
    assert output == expected[: len(output)]


def test_the_window_never_changes_the_other_rows() -> None:
    """The same guesses with and without the window beside them get the same logits."""
    target = tiny_target()
    method = Lookahead(target, None, LookaheadSettings(5, 4, 5))
    for draft, output, _ in replay(target, method, [7, 8], 20):
        tree = draft.tree()
        kept = (tree.roles != WINDOW).nonzero().flatten()
        alone = target.forward(tree.keep(kept)).logits
        torch.testing.assert_close(output.logits[kept], alone, atol=1e-4, rtol=0)
        target.forward(tree)  # what replay commits from
