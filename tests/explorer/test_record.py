"""The fast record against a slow plain twin, on random trees, tied logits and pruned ghosts."""

import math
import random

import pytest
import torch

from explorer.methods.base import Draft
from explorer.record import NUM_GHOSTS, StepFacts, build_step, shorten
from explorer.trace import StepTimes
from explorer.tree import DraftTree
from explorer.verify import verify_greedy

MS = StepTimes([1.0], 2.0, 3.0, 4.0, 0.0)


def make_facts(seed, num_considered=120, num_kept=16, vocab=300, *, ties=False, dtype=torch.float32):
    """A random considered tree, its best rows kept, and a target that likes some of its nodes."""
    rng = random.Random(seed)
    parents = [-1] + [rng.randrange(max(1, i // 4 + 1)) for i in range(1, num_considered)]
    tokens, siblings = [rng.randrange(vocab)], {}
    for parent in parents[1:]:
        taken = siblings.setdefault(parent, set())
        token = next(t for t in iter(lambda: rng.randrange(vocab), None) if t not in taken)
        taken.add(token)
        tokens.append(token)
    probs = [math.nan] + [rng.choice((1.0, 0.5, rng.random())) for _ in parents[1:]]
    considered = DraftTree.from_lists(tokens, parents, probs)
    best = considered.scores.sort(descending=True, stable=True).indices[:num_kept].sort().values
    draft = Draft(considered, kept=best, rank_of=lambda row, token: 1000 * row + token)
    tree = draft.tree()
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(tree), vocab, generator=generator) * 3
    if ties:
        logits = logits.round()
    for row in range(len(tree)):
        children = [i for i in range(num_considered) if considered.parent_list[i] == draft.kept_rows()[row]]
        if children and rng.random() < 0.8:
            logits[row, tokens[rng.choice(children)]] = 30.0
    root_logits = torch.randn(vocab, generator=generator)
    logits, root_logits = logits.to(dtype), root_logits.to(dtype)
    verdict = verify_greedy(tree, logits)
    emitted = [*verdict.accepted_tokens, verdict.next_token]
    return StepFacts(7, 41, draft, tree, verdict, logits, root_logits, emitted, None)


def order(logits):
    """Token ids from the target's favourite on, equal ones by id."""
    values = logits.float().tolist()
    return sorted(range(len(values)), key=lambda token: (-values[token], token))


def twin_tree(facts):
    """target_prob, target_rank and target_top, row by row."""
    probs, ranks, tops = [], [], []
    for row, (parent, token) in enumerate(zip(facts.tree.parent_list, facts.tree.token_list, strict=True)):
        above = facts.root_logits if row == 0 else facts.logits[parent]
        probs.append(float(above.float().softmax(-1)[token]))
        ranks.append(order(above).index(token))
        after = facts.logits[row].float().softmax(-1)
        top = [(t, float(after[t])) for t in order(facts.logits[row])[:5]]
        tops.append(top if row in facts.verdict.path else None)
    return probs, ranks, tops


def twin_ghosts(facts):
    """The rows of the considered tree that are shown as ghosts."""
    considered, kept = facts.draft.considered, facts.draft.kept_rows()
    cut = [row for row in range(len(considered)) if row not in kept]
    ranked = sorted(cut, key=lambda row: (-float(considered.scores[row]), row))
    shown = set(ranked[:NUM_GHOSTS])
    for row in cut:
        for path_row in facts.verdict.path:
            is_child = considered.parent_list[row] == kept[path_row]
            if is_child and order(facts.logits[path_row])[0] == considered.token_list[row]:
                shown.add(row)
    return sorted(shown)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ties", [False, True])
def test_tree_columns_equal_the_twin(seed, ties):
    facts = make_facts(seed, ties=ties)
    step = build_step(facts, MS)
    probs, ranks, tops = twin_tree(facts)
    assert step.tree.target_prob == pytest.approx(probs, rel=1e-4, abs=1e-9)
    assert step.tree.target_rank == ranks
    for mine, theirs in zip(step.tree.target_top, tops, strict=True):
        assert (mine is None) == (theirs is None)
        if theirs is not None and not ties:  # which of many tied tokens fill the last places is open
            assert [token for token, _ in mine] == [token for token, _ in theirs]
        if theirs is not None:
            assert [p for _, p in mine] == pytest.approx([p for _, p in theirs], rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_ghosts_equal_the_twin(seed):
    facts = make_facts(seed, num_considered=200)
    step, considered, kept = build_step(facts, MS), facts.draft.considered, facts.draft.kept_rows()
    shown = twin_ghosts(facts)
    assert step.num_pruned == len(considered) - len(kept)
    assert step.ghosts.token == [considered.token_list[row] for row in shown]
    assert step.ghosts.score == pytest.approx(considered.scores[shown].tolist())
    assert step.ghosts.draft_prob == pytest.approx(considered.draft_probs[shown].tolist())
    all_rows = kept + shown
    for i, parent in enumerate(step.ghosts.parent):
        assert parent < len(kept) + i
        assert all_rows[parent] == considered.parent_list[shown[i]]
        prob = step.ghosts.target_prob[i]
        if parent < len(kept):
            assert prob == pytest.approx(float(facts.logits[parent].softmax(-1)[step.ghosts.token[i]]), rel=1e-4)
        else:
            assert prob is None


def test_a_wanted_ghost_is_listed_beyond_the_best():
    considered = DraftTree.from_lists(range(100), [-1] + [0] * 99, [math.nan] + [0.9**i for i in range(99)])
    draft = Draft(considered, kept=torch.arange(3))
    logits = torch.zeros(3, 200)
    logits[0, 99] = 9.0  # the worst ghost of all
    verdict = verify_greedy(draft.tree(), logits)
    step = build_step(StepFacts(0, 1, draft, draft.tree(), verdict, logits, logits[0], [99], None), MS)
    assert step.num_pruned == 97 and len(step.ghosts) == NUM_GHOSTS + 1 and step.ghosts.token[-1] == 99
    assert step.ghosts.parent == [0] * 65


def test_a_ghost_that_outscores_its_parent_by_rounding_keeps_it():
    parents = [-1, *([0] * 70), 70]
    probs = [math.nan, *([0.5] * 69), 1e-6, 1.0]
    probs[71] = 1e6  # far beyond rounding: the child of the worst node ranks first
    considered = DraftTree.from_lists(range(72), parents, probs)
    draft = Draft(considered, kept=torch.arange(2))
    logits = torch.randn(2, 100, generator=torch.Generator().manual_seed(0))
    verdict = verify_greedy(draft.tree(), logits)
    step = build_step(StepFacts(0, 1, draft, draft.tree(), verdict, logits, logits[0], [1], None), MS)
    assert 70 in step.ghosts.token and 71 in step.ghosts.token
    assert all(parent < 2 + i for i, parent in enumerate(step.ghosts.parent))


@pytest.mark.parametrize("seed", range(4))
def test_the_rest_is_handed_through(seed):
    facts = make_facts(seed)
    step, path = build_step(facts, MS), facts.verdict.path
    last = facts.logits[path[-1]].softmax(-1)
    assert (step.index, step.prefix_len, step.ms, step.extra) == (7, 41, MS, {})
    assert step.path == list(path) and step.emitted == facts.emitted
    assert step.tree.state == list(facts.verdict.outcomes) and step.tree.role[0] == "root"
    assert step.next_prob == pytest.approx(float(last[step.next_token]), rel=1e-4)
    assert step.next_draft_rank == 1000 * facts.draft.kept_rows()[path[-1]] + step.next_token
    assert step.tree.draft_prob[0] is None and step.tree.accept_prob[0] is None and step.tree.score[0] == 0
    tested = {draw.row for draw in step.draws}
    assert [row for row, prob in enumerate(step.tree.accept_prob) if prob is not None] == sorted(tested)


def test_a_plain_step():
    tree = DraftTree.root_only(3)
    logits = torch.randn(1, 10, generator=torch.Generator().manual_seed(0))
    verdict = verify_greedy(tree, logits)
    step = build_step(
        StepFacts(0, 5, Draft(tree), tree, verdict, logits, logits[0], [verdict.next_token], "no_draft"), MS
    )
    assert len(step.tree) == 1 and len(step.ghosts) == 0 and step.num_pruned == 0
    assert step.next_draft_rank is None and step.plain_reason == "no_draft" and step.next_kind == "bonus"
    assert step.tree.target_top[0][0][0] == step.next_token


def test_a_vocabulary_smaller_than_the_top():
    tree = DraftTree.root_only(1)
    logits = torch.tensor([[0.0, 1.0, 2.0]])
    facts = StepFacts(0, 5, Draft(tree), tree, verify_greedy(tree, logits), logits, logits[0], [2], None)
    assert [token for token, _ in build_step(facts, MS).tree.target_top[0]] == [2, 1, 0]


def test_half_precision_is_widened_first():
    facts = make_facts(3, dtype=torch.bfloat16)
    step = build_step(facts, MS)
    probs, ranks, _ = twin_tree(facts)
    assert step.tree.target_rank == ranks
    assert step.tree.target_prob == pytest.approx(probs, rel=1e-4, abs=1e-9)


def test_shorten_keeps_float32():
    for value in torch.rand(1000, generator=torch.Generator().manual_seed(0)).tolist():
        assert torch.tensor(shorten(value)).item() == value
