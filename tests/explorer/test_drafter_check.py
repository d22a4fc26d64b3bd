"""A drafter is compared with its target once: its own one passes, another one's and one that knows nothing do not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from explorer.checkpoints.eagle import load_eagle
from explorer.checkpoints.medusa import load_medusa
from explorer.drafter_check import (
    ANSWER_TOKENS,
    QUESTION,
    Agreement,
    Reading,
    find_doubt,
    measure_agreement,
    read_answer,
    read_text,
)
from explorer.target import Target
from explorer.text import render_prompt
from tests.support.goldens import FOLDER, golden_target
from tests.support.tiny import greedy

LOADERS = {"eagle": load_eagle, "medusa": load_medusa}


def load(name: str, target: Target) -> Any:
    return LOADERS[name.split("_")[0]](str(FOLDER / name), target).module


@pytest.mark.parametrize(
    ("base", "name", "belongs"),
    [
        ("base_a", "eagle_bias", True),
        ("base_a", "medusa_a", True),
        ("base_b", "eagle_nobias", True),
        ("base_b", "medusa_b", True),
        ("medusa_c", "medusa_c", True),
        ("base_b", "eagle_bias", False),
        ("base_a", "eagle_nobias", False),
        ("base_b", "medusa_a", False),
        ("base_a", "medusa_b", False),
    ],
)
def test_the_golden_drafters_and_their_targets(base: str, name: str, belongs: bool) -> None:
    target = golden_target(base)
    doubt = find_doubt(load(name, target), target, read_text(target), partial(read_answer, target))
    assert (doubt is None) == belongs
    if doubt is not None:
        assert "does not seem to belong to this target" in doubt
        assert "the output stays right" in doubt


@pytest.mark.parametrize("name", ["eagle_bias", "medusa_a"])
@pytest.mark.parametrize("seed", range(3))
def test_random_weights_are_doubted(name: str, seed: int) -> None:
    target = golden_target("base_a")
    drafter = load(name, target)
    torch.manual_seed(seed)
    for parameter in drafter.parameters():
        parameter.data = torch.randn_like(parameter) * parameter.std()
    assert find_doubt(drafter, target, read_text(target), partial(read_answer, target)) is not None


def test_the_reading_is_the_targets_own() -> None:
    target = golden_target("base_a")
    reading = read_text(target)
    ids = reading.token_ids.tolist()
    assert target.length == 0, "nothing of it stays in the cache"
    for end in (2, len(ids) // 2, len(ids)):
        assert greedy(target, ids[:end], 1) == [int(reading.wanted[end - 2])]
    assert reading.features.shape == (len(ids), target.hidden_size)
    assert len(reading.wanted) == len(ids) - 1
    layers = read_text(target, (2, 0))
    assert layers.features.shape == (len(ids), 2 * target.hidden_size)
    assert torch.equal(layers.features[:, target.hidden_size :], target.embed_tokens(reading.token_ids))
    assert torch.equal(layers.wanted, reading.wanted)


class Parrot:
    """Guesses a fixed list."""

    def __init__(self, guesses: Tensor) -> None:
        self._guesses = guesses

    def guess_next(self, token_ids: Tensor, hidden: Tensor, lm_head: object) -> Tensor:
        return self._guesses


def reading(wanted: list[int]) -> Reading:
    return Reading(torch.zeros(len(wanted) + 1), torch.empty(0), torch.tensor(wanted))


def test_always_the_commonest_token_is_luck() -> None:
    target = golden_target("base_a")
    found = measure_agreement(Parrot(torch.full((20,), 7)), target, reading([7] * 8 + list(range(100, 112))))
    assert (found.num_equal, found.num_tested) == (8, 20)
    assert found.chance == pytest.approx(8.0)
    assert found.is_near_chance


def test_a_perfect_drafter_and_a_text_too_short_to_tell() -> None:
    target = golden_target("base_a")
    wanted = list(range(20))
    other = partial(reading, list(range(200, 220)))
    assert find_doubt(Parrot(torch.tensor(wanted)), target, reading(wanted), other) is None
    assert find_doubt(Parrot(torch.tensor([9, 9, 9])), target, reading([1, 2, 3]), other) is None
    assert find_doubt(Parrot(torch.full((20,), 99)), target, reading(wanted), other) is not None


def test_a_drafter_that_knows_the_targets_answers_alone_is_not_doubted() -> None:
    target, wanted = golden_target("base_a"), list(range(20))
    text, parrot = reading(list(range(100, 120))), Parrot(torch.tensor(wanted))
    assert find_doubt(parrot, target, text, partial(reading, wanted)) is None
    doubt = find_doubt(Parrot(torch.full((20,), 99)), target, text, partial(reading, wanted))
    assert doubt is not None and "0 times in 20" in doubt
    doubt = find_doubt(Parrot(torch.tensor(wanted)), target, text, lambda: replace(reading(wanted), start=17))
    assert doubt is not None, "three tokens of an answer tell nothing"


def test_a_template_for_other_messages_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    target = golden_target("base_a")
    monkeypatch.setattr(target.tokenizer, "chat_template", "{{ raise_exception('no') }}")
    asked = render_prompt(target.tokenizer, QUESTION, use_chat_template=False).token_ids
    assert read_answer(target).token_ids[: len(asked)].tolist() == asked


def test_the_answer_is_what_the_target_writes() -> None:
    """What is compared are its choices from the first token of the answer on, and nothing of it stays."""
    target = golden_target("base_a")
    found = read_answer(target)
    asked = render_prompt(target.tokenizer, QUESTION).token_ids
    ids = found.token_ids.tolist()
    assert ids[: len(asked)] == asked and target.length == 0
    assert 0 < len(ids) - len(asked) <= ANSWER_TOKENS
    assert ids[len(asked) :] == greedy(target, asked, len(ids) - len(asked))
    assert found.wanted[found.start : -1].tolist() == ids[len(asked) :]


@pytest.mark.parametrize(
    ("num_equal", "num_tested", "chance", "expected"),
    [(0, 48, 0.0, True), (2, 48, 0.0, True), (3, 48, 0.0, False), (6, 48, 2.0, True), (7, 48, 2.0, False)],
)
def test_where_the_line_is_drawn(num_equal: int, num_tested: int, chance: float, expected: bool) -> None:
    assert Agreement(num_equal, num_tested, chance).is_near_chance is expected
