"""A diagnosis adds up, ranks the worst first, and keeps runs of different settings apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from explorer.codec import encode
from explorer.diagnose import MIN_SPAN, Subject, diagnose
from explorer.errors import TraceError
from explorer.misses import misses
from explorer.spots import spots
from explorer.trace import Trace
from tests.support.recorded import RECORDED, recorded
from tests.support.traces import make_trace


def made(seed: int = 0, method: str = "eagle2", **settings: int) -> Trace:
    trace = make_trace(method, 20, seed=seed)
    return replace(trace, settings=trace.settings | settings)


def test_every_group_adds_up_to_the_whole() -> None:
    traces = [made(seed) for seed in range(3)]
    (method,) = diagnose([Subject(trace) for trace in traces]).methods
    total = sum(len(spots(trace)) for trace in traces)
    for groups in (method.by_class, method.by_position, method.by_entropy):
        assert sum(group.num_tokens for group in groups) == total
        assert sum(group.num_accepted for group in groups) == sum(t.stats.num_accepted_draft_tokens for t in traces)
    expected = Counter[str]()
    for trace in traces:
        expected.update({ending.kind: ending.count for ending in misses(trace).endings})
    assert {ending.kind: ending.count for ending in method.endings} == expected
    assert method.tau == pytest.approx(1 + sum(g.num_accepted for g in method.by_class) / method.num_steps)
    assert method.speedup is not None and method.break_even is not None and method.tau is not None
    assert method.speedup == pytest.approx(method.tau / method.break_even)


def test_prompts_and_text_are_ranked_worst_first() -> None:
    found = diagnose([Subject(made(seed), f"{seed}.json") for seed in range(5)])
    taus = [row.tau for row in found.prompts if row.tau is not None]
    assert taus == sorted(taus) and len(taus) == 5
    worst = found.prompts[0]
    assert worst.file == f"{worst.run}.json"
    step = made(worst.run).steps[worst.worst_step or 0]
    assert step.num_accepted == min(s.num_accepted for s in made(worst.run).steps if s.num_drafted and not s.is_cut)
    shares = [span.accepted for span in found.spans]
    assert shares == sorted(shares)
    by_run = Counter[int]()
    for span in found.spans:
        by_run[span.run] += span.num_tokens
    assert by_run == {seed: len(spots(made(seed))) for seed in range(5)}, "every token is in one span"
    assert all(span.num_tokens >= MIN_SPAN for span in found.spans)


def test_settings_and_methods_are_kept_apart() -> None:
    found = diagnose([Subject(made()), Subject(made(depth=9)), Subject(made(method="medusa")), Subject(made(1))])
    assert [(item.method, item.num_runs) for item in found.methods] == [("eagle2", 2), ("eagle2", 1), ("medusa", 1)]
    assert [item.label for item in found.methods] == ["EAGLE-2 (depth 5)", "EAGLE-2 (depth 9)", "Medusa"]


def test_plain_decoding_is_left_out_and_alone_refused() -> None:
    plain = make_trace("autoregressive")
    assert len(diagnose([Subject(plain), Subject(made())]).prompts) == 1
    with pytest.raises(TraceError, match="nothing was drafted"):
        diagnose([Subject(plain)])


def test_a_run_without_steps_or_baseline_is_ranked_last() -> None:
    whole = made()
    empty = replace(
        whole, steps=[], output=replace(whole.output, token_ids=[whole.first_token]), baseline=None,
        stats=replace(whole.stats, speedup=None),
    )  # fmt: skip
    found = diagnose([Subject(empty), Subject(replace(whole, baseline=None))])
    assert [(row.run, row.tau is None) for row in found.prompts] == [(1, False), (0, True)]
    assert (found.methods[0].speedup, found.methods[0].break_even) == (None, None)
    alone = diagnose([Subject(empty)])
    assert (alone.methods[0].verdict, alone.spans, alone.methods[0].tau) == ([], [], None)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_runs_have_a_verdict_with_numbers(name: str) -> None:
    found = diagnose([Subject(recorded(name), name)])
    (method,) = found.methods
    assert method.verdict and all(any(char.isdigit() for char in item.sentence) for item in method.verdict)
    has_confidence = any(prob is not None for step in recorded(name).steps for prob in step.tree.draft_prob[1:])
    assert bool(method.calibrations) == has_confidence  # guesses from the text or the target carry no probability
    assert encode(found)["methods"][0]["method"] == method.method


def test_rests_of_an_adaptive_run_are_left_out_and_counted() -> None:
    trace = made()
    plain = next(step for step in trace.steps if step.plain_reason)
    told = {"fallback": {"tokens": 1.1, "needed": 1.5, "left": 2}}
    rest = replace(plain, plain_reason="fallback", extra=told)
    drafted = replace(trace, steps=[step for step in trace.steps if step.num_drafted])
    adaptive = replace(trace, steps=[*trace.steps[: plain.index], rest, *trace.steps[plain.index + 1 :]])
    before, after = (diagnose([Subject(one)]).methods[0] for one in (drafted, adaptive))
    assert (after.num_rests, before.num_rests, before.rests) == (1, 0, [])
    assert after.rests[0].startswith("1 plain step: resting")
    assert (after.num_steps, after.tau, after.endings) == (before.num_steps, before.tau, before.endings)
    assert after.verdict == before.verdict
