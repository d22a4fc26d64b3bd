"""The headline numbers: what was measured, said plainly, also when it is bad news or absent."""

from __future__ import annotations

from dataclasses import replace

from explorer.adapter_words import AdapterRecord
from explorer.trace import Baseline, Divergence, Trace
from explorer.views.facts import Fact, facts
from tests.support.traces import make_trace


def of(trace: Trace) -> dict[str, Fact]:
    return {fact.name: fact for fact in facts(trace)}


def with_stats(trace: Trace, **values: float | None) -> Trace:
    return replace(trace, stats=replace(trace.stats, **values))  # type: ignore[arg-type]


def test_tokens_per_pass_with_and_without_the_targets_own() -> None:
    fact = of(with_stats(make_trace(), mean_acceptance_length=2.854))["per_pass"]
    assert (fact.value, fact.note) == ("2.85", "1.85 without the target's own")


def test_a_slowdown_is_called_one() -> None:
    fact = of(with_stats(make_trace(), speedup=0.826))["speedup"]
    assert (fact.value, fact.label, fact.tone) == ("0.83×", "plain speed", "bad")
    assert fact.note.startswith("slower")
    fact = of(with_stats(make_trace(), speedup=1.414))["speedup"]
    assert (fact.value, fact.label, fact.tone) == ("1.41×", "speedup", "good")
    for even in (0.96, 1.04):
        assert of(with_stats(make_trace(), speedup=even))["speedup"].tone == "plain"


def test_a_missing_speedup_says_why() -> None:
    waiting = with_stats(make_trace(), speedup=None)
    assert (of(waiting)["speedup"].value, of(waiting)["speedup"].note) == ("–", "after the first step")
    assert of(replace(waiting, baseline=None))["speedup"].note == "no baseline in this run"


def test_speed_both_ways_and_time_to_first_token() -> None:
    trace = make_trace()
    found = of(trace)
    assert found["speed"].value == f"{trace.stats.tokens_per_second:.1f}"
    assert found["speed"].note == "24.0 autoregressive"
    assert found["first_token"].value == "56 ms"
    slow = replace(trace, prefill_ms=replace(trace.prefill_ms, target=2300.0))
    assert of(slow)["first_token"].value == "2.30 s"


def test_how_passes_were_launched_is_told_where_it_is_not_the_ordinary_way() -> None:
    trace = make_trace()
    assert "graphs" not in of(trace)["speed"].help
    graphed = replace(trace, target=replace(trace.target, execution="graphed"))
    assert "passes as CUDA graphs; recording" in of(graphed)["speed"].help


def test_drafter_size() -> None:
    found = of(make_trace())["drafter"]
    assert (found.value, found.note) == ("4.2 M", "8.4 MB, 3.1 % of target")
    assert of(make_trace("autoregressive"))["drafter"].value == "none"


def test_equality_badge() -> None:
    trace = make_trace()
    assert of(trace)["equal"].value == "✓ equal"
    split = Baseline(False, Divergence(56, 4, 5, 0.00012), 24.0, [])
    fact = of(replace(trace, baseline=split))["equal"]
    assert (fact.value, fact.note, fact.tone) == ("✗ differs", "first differs at token 57, logit gap 0.00012", "bad")
    assert of(replace(trace, baseline=None))["equal"].label == "not compared"
    sampled = of(make_trace(acceptance="rejection"))["equal"]
    assert (sampled.label, sampled.tone) == ("not compared", "plain")
    assert sampled.note == "sampled: no single right output"
    assert of(make_trace("medusa", acceptance="typical"))["equal"].note == "typical (not distribution-preserving)"


def test_a_run_without_steps_has_dashes() -> None:
    trace = with_stats(
        replace(make_trace(), steps=[]), mean_acceptance_length=None, tokens_per_second=None, speedup=None
    )
    found = of(trace)
    assert [found[name].value for name in ("per_pass", "speedup", "speed")] == ["–", "–", "–"]


def test_an_adapted_target_says_so_and_how_far_it_is() -> None:
    trace = make_trace()
    assert "adapted" not in of(trace) and of(trace)["equal"].note == "token for token"
    adapter = AdapterRecord("medusa2", "SmolLM2", 1, 0.0123, 0.9715, 12_345)
    found = of(replace(trace, target=replace(trace.target, adapter=adapter)))
    assert (found["equal"].value, found["equal"].note) == ("✓ equal", "of the adapted target")
    assert "lossless with respect to the adapted target" in found["equal"].help
    assert (found["adapted"].value, found["adapted"].note) == ("97.2 %", "mean KL 0.012")
    assert "SmolLM2" in found["adapted"].help
