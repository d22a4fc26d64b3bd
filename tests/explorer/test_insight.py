"""Sentences and judgements: one exact example of each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer import insight
from explorer.config import ACCEPTANCES
from explorer.insight import row_sentences
from explorer.trace import DrawRecord, GhostColumns, Label, Step, StepTimes, TreeColumns
from tests.support.traces import make_trace

VOCAB = {str(i): Label(label, "text") for i, label in enumerate("root good bad below late cut seven".split())}


def make_step(**changes: object) -> Step:
    """root(0) -> good(1, accepted) with child late(4, rejected); root -> bad(2, rejected) -> below(3)."""
    tree = TreeColumns(
        token=[0, 1, 2, 3, 4],
        parent=[-1, 0, 0, 2, 1],
        role=["root"] + ["draft"] * 4,
        draft_prob=[None, 0.6, 0.3, 0.2, 0.1],
        score=[0.0, -0.5, -1.2, -2.8, -2.9],
        target_prob=[0.9, 0.62, 0.03, 0.5, 0.004],
        target_rank=[0, 0, 2, 0, 9],
        accept_prob=[None, 1.0, 0.0, None, 0.0],
        state=["root", "accepted", "rejected", "unreachable", "rejected"],
        target_top=[[(1, 0.62), (2, 0.03)], [(6, 0.4)], None, None, None],
    )
    draws = [DrawRecord(1, None, 1.0, True), DrawRecord(2, None, 0.0, False), DrawRecord(4, None, 0.0, False)]
    step = Step(
        3,
        212,
        tree,
        GhostColumns(),
        0,
        draws,
        [0, 1],
        6,
        "recovered",
        0.4,
        None,
        [1, 6],
        StepTimes([1.0], 2.0, 0, 0, 0),
    )
    return replace(step, **changes)  # type: ignore[arg-type]


def plain(text: str) -> str:
    return text.replace("\u2068", "").replace("\u2069", "")


def reasons(step: Step) -> list[str]:
    found = insight.row_sentences(step, VOCAB)
    return [plain(found.texts[index]) for index in found.index]


def test_greedy_reasons() -> None:
    root, good, bad, below, late = reasons(make_step())
    assert root == "The last token of the output, chosen by step 3. It is not in the KV cache yet: this pass writes it."
    assert good == "Accepted: after ‘root’ it is the target's first choice (62 %)."
    assert bad == "Rejected: after ‘root’ the target wanted ‘good’ (62 %)."
    assert below == "Never tested: it hangs below ‘bad’, which was rejected."
    assert late == "Rejected: after ‘good’ the target wanted ‘seven’ (40 %)."


def test_the_first_root_comes_from_the_prompt_pass() -> None:
    assert "chosen by the prompt pass" in reasons(make_step(index=0))[0]


def test_sampled_reasons_name_the_draw() -> None:
    draws = [DrawRecord(2, 0.73, 0.41, False, None, 0.59, []), DrawRecord(1, 0.31, 0.62, True)]
    found = reasons(make_step(draws=draws))
    assert found[2] == "Rejected: the draw 0.73 is above the acceptance probability 0.41."
    assert found[1] == "Accepted: the draw 0.31 is below the acceptance probability 0.62."


def test_typical_reasons_name_the_threshold() -> None:
    draws = [DrawRecord(1, None, 1.0, True, 0.09), DrawRecord(2, None, 0.0, False, 0.09)]
    found = reasons(make_step(draws=draws))
    assert found[1] == "Accepted: its target probability is above the threshold 0.09."
    assert found[2] == "Rejected: its target probability is below the threshold 0.09."


def test_typical_reasons_of_rows_that_were_tested_off_the_path() -> None:
    draws = [DrawRecord(1, None, 0.9, True, 0.09), DrawRecord(3, None, 0.4, True, 0.09)]
    assert reasons(make_step(draws=draws))[3] == "It passes the test, but another path was chosen above it."
    draws[1] = DrawRecord(3, None, 0.01, False, 0.09)
    assert reasons(make_step(draws=draws))[3] == "It fails the test, but another path was chosen above it."


def test_untried_says_which_sibling_was_first_or_that_it_passed() -> None:
    step = make_step()
    state = [*step.tree.state[:2], "untried", *step.tree.state[3:]]
    untested = replace(step.tree, state=state, accept_prob=[None, 1.0, None, None, 0.0])
    found = reasons(make_step(tree=untested))
    assert found[2] == "Never tested: its sibling ‘good’ was accepted first."
    assert found[3] == "Never tested: it hangs below ‘bad’, which was not taken."
    passing = replace(untested, accept_prob=[None, 1.0, 1.0, None, 0.0])
    assert reasons(make_step(tree=passing))[2] == "It passes the test, but a longer path was chosen."


def test_attention() -> None:
    assert insight.attention_sentences(make_step()) == [
        "Sees 212 prefix + itself; position 212",
        "Sees 212 prefix + 1 ancestor + itself; position 213",
        "Sees 212 prefix + 2 ancestors + itself; position 214",
    ]


def test_miss_classes_are_exclusive_and_in_order() -> None:
    step = make_step()
    assert insight.miss_class(step) == "not_drafted"
    assert insight.miss_class(replace(step, next_draft_rank=11)) == "outranked"
    assert insight.miss_class(replace(step, next_token=3, next_draft_rank=11)) == "elsewhere"
    pruned = GhostColumns([3], [1], [0.1], [-3.0], [0.4])
    assert insight.miss_class(replace(step, next_token=3, ghosts=pruned)) == "pruned"
    other_ghost = GhostColumns([6], [2], [0.1], [-3.0], [0.4])
    assert insight.miss_class(replace(step, ghosts=other_ghost)) == "not_drafted"
    assert insight.miss_class(replace(step, next_token=4)) == "sampled"
    assert insight.miss_class(replace(step, next_draft_rank=0, extra={"sampled": True})) == "sampled"
    assert insight.miss_class(replace(step, extra={"sampled": True})) == "not_drafted", (
        "it is not in the drafter's list"
    )
    assert insight.miss_class(replace(step, next_kind="bonus")) is None
    assert insight.miss_class(replace(step, next_token=2)) == "not_drafted", "another depth is another position"


def test_a_window_row_was_not_drafted() -> None:
    step = make_step()
    tree = replace(step.tree, role=["root"] + ["draft"] * 3 + ["window"], state=[*step.tree.state[:4], "window"])
    assert insight.miss_class(replace(step, tree=tree, next_token=4)) == "not_drafted"


def test_counts_and_lists_in_sentences() -> None:
    assert [insight.plural(count, "row") for count in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert insight.plural(3, "pass", "passes") == "3 passes"
    assert insight.listing(["a"]) == "a"
    assert insight.listing(["a", "b", "c"]) == "a, b and c"
    assert insight.listing(["a", "b"], 3) == "a, b and 3 more"
    assert plain(insight.quoted(VOCAB, [1, 2])) == "‘good’ and ‘bad’"
    assert plain(insight.quoted(VOCAB, [0] * 8)) == f"{', '.join(['‘root’'] * 5)} and 3 more"
    assert insight.quoted(VOCAB, []) == ""


def test_every_miss_class_has_its_clause() -> None:
    step = make_step()
    variants = [step, replace(step, next_draft_rank=11), replace(step, next_token=3), replace(step, next_token=4)]
    variants.append(replace(step, next_draft_rank=0, extra={"sampled": True}))
    clauses = {insight.miss_clause(variant) for variant in variants}
    assert len(clauses) == len(variants)
    assert "was number 12 in the drafter's list here, too low to be drafted" in clauses
    assert "was number 1 in the drafter's list here, but the drafter drew otherwise" in clauses


def test_step_sentences() -> None:
    step = make_step()
    start = "4 drafted, 1 accepted: ‘good’. "
    assert (
        plain(insight.step_sentence(step, VOCAB))
        == start + "Then the target chose ‘seven’, which was not drafted here."
    )
    bonus = replace(step, next_kind="bonus")
    assert plain(insight.step_sentence(bonus, VOCAB)) == start + "Bonus token: ‘seven’."
    cut = replace(step, emitted=[1])
    assert plain(insight.step_sentence(cut, VOCAB)).endswith("The run stopped inside this path: 1 token was kept.")
    assert "0 accepted. Then" in insight.step_sentence(replace(step, path=[0], emitted=[6]), VOCAB)


def test_own_token() -> None:
    step = make_step()
    assert "was not drafted here" in insight.own_token_sentence(step, VOCAB)
    bonus = replace(step, next_kind="bonus", ghosts=GhostColumns([6], [1], [0.1], [-3.0], [0.4]))
    assert insight.own_token_sentence(bonus, VOCAB).endswith("It had been drafted too, but the rerank pruned it.")


def test_quotes_are_short_isolated_and_visible() -> None:
    vocab = {"1": Label("\u202eevil\0" + "x" * 500, "text")}
    text = insight.quote(vocab, 1)
    assert text.startswith("‘\u2068⟨U+202E⟩evi…x")
    assert len(text) <= insight.QUOTE_LENGTH + 4
    assert insight.quote(vocab, 77) == "‘\u2068#77\u2069’"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.624, "62 %"),
        (0.0431, "4.3 %"),
        (0.00005, "<0.01 %"),
        (0.0003, "0.03 %"),
    ],
)
def test_percent(value: float | None, shown: str) -> None:
    assert insight.percent(value) == shown


@pytest.mark.parametrize("method", ["eagle2", "medusa", "lookahead", "draft_model", "autoregressive"])
@pytest.mark.parametrize("acceptance", ACCEPTANCES)
def test_every_row_of_every_method_has_a_sentence(method: str, acceptance: str) -> None:
    trace = make_trace(method, 8, 40, acceptance=acceptance)
    for step in trace.steps:
        found = insight.row_sentences(step, trace.vocab)
        assert len(found.index) == len(step.tree)
        assert all(text.endswith(".") for text in found.texts)
        assert len(set(found.texts)) == len(found.texts)
        assert insight.step_sentence(step, trace.vocab).endswith(".")


def test_thousands_of_unreachable_rows_name_their_common_ancestor_without_walking_to_it() -> None:
    step = next(step for step in make_trace("eagle2", 12, 40).steps if "unreachable" in step.tree.state)
    row = step.tree.state.index("unreachable")
    count = 3000
    tree = replace(
        step.tree,
        parent=step.tree.parent + list(range(len(step.tree) - 1, len(step.tree) - 1 + count)),
        token=step.tree.token + [step.tree.token[row]] * count,
        state=step.tree.state + ["unreachable"] * count,
    )
    tree.parent[len(step.tree)] = row
    sentences = row_sentences(replace(step, tree=tree), {})
    assert {sentences.index[row]} == set(sentences.index[len(step.tree) :])
