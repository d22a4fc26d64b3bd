"""Lanes of measured time: they are the record's times, leads are who has most tokens, and slowness is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from explorer.errors import TraceError
from explorer.race import FACTORS, READABLE_MS, race, speed_sentence
from explorer.trace import Divergence, StepTimes, Trace
from tests.support.recorded import recorded
from tests.support.traces import make_trace


def timed(draft: float, verify: float, other: float, plain_ms: float) -> Trace:
    """A run of 4 steps that give 2 tokens each, with these parts a step, against ``plain_ms`` a token."""
    trace = recorded("eagle2-code")
    two = [step for step in trace.steps if len(step.emitted) == 2][:4]
    steps = [replace(step, index=i, ms=StepTimes([draft], verify, 0.0, other, 99.0)) for i, step in enumerate(two)]
    tokens = [trace.first_token, *(token for step in steps for token in step.emitted)]
    speed = 1000 * 8 / (4 * (draft + verify + other))
    assert trace.baseline is not None
    return replace(
        trace,
        steps=steps,
        output=replace(trace.output, token_ids=tokens),
        baseline=replace(trace.baseline, tokens_per_second=1000 / plain_ms, ms_per_token=[plain_ms] * 8),
        stats=replace(trace.stats, speedup=speed / (1000 / plain_ms), mean_acceptance_length=2.0),
    )


def test_lanes_are_the_records_times() -> None:
    trace = recorded("eagle2-maths")
    lane, plain = race([trace]).lanes
    assert (lane.label, lane.trace, lane.is_baseline) == ("EAGLE-2", 0, False)
    assert (plain.label, plain.trace, plain.is_baseline) == ("Plain decoding", 0, True)
    assert sum(ms for _, ms in lane.spans) == pytest.approx(sum(step.ms.total for step in trace.steps))
    assert lane.total_ms == pytest.approx(sum(ms for _, ms in lane.spans))
    assert [kind for kind, _ in lane.spans[:6]] == ["draft"] * 4 + ["verify", "other"]
    assert lane.arrivals[0] == (0.0, 1)
    assert lane.num_tokens == plain.num_tokens == len(trace.output.token_ids)
    assert len(lane.arrivals) == len(trace.steps) + 1, "the tokens of a step come at once"
    assert trace.baseline is not None
    assert plain.total_ms == pytest.approx(sum(trace.baseline.ms_per_token))
    assert lane.prefill_ms == pytest.approx(trace.prefill_ms.target + (trace.prefill_ms.drafter or 0))


def test_the_leader_has_most_tokens_at_every_moment() -> None:
    found = race([recorded("eagle2-maths"), recorded("medusa-maths")])
    leads = [*found.leads, (found.duration_ms, -1)]
    for (start, leader), (end, _) in pairwise(leads):
        for ms in (start, (start + end) / 2):
            counts = [max(count for at, count in lane.arrivals if at <= ms) for lane in found.lanes]
            assert counts[leader] == max(counts)
    assert all(before != after for (_, before), (_, after) in pairwise(found.leads))
    ms, leader = found.leads[-1]
    assert f"; {found.lanes[leader].label} takes it for good after {ms / 1000:.2f} s." in found.sentences[0]
    ends = sorted((lane.total_ms, lane.label) for lane in found.lanes)
    times = "; ".join(f"{label} {end / 1000:.2f} s" for end, label in ends)
    assert found.sentences[1] == f"The first {found.lanes[0].num_tokens} tokens took: {times}."


def test_a_lead_that_never_changes() -> None:
    found = race([timed(10, 60, 0, 100)])
    assert found.leads == [(70.0, 0)]
    assert found.sentences[0] == "EAGLE-2 leads from its first tokens on."


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((20, 150, 10), "0.89 × plain speed, slower: a step cost 2.25 plain tokens' time (180 ms against 80 ms)"),
        (
            (20, 150, 10),
            "its verify pass alone cost 1.88, drafting 0.25. The pass would pay, drafting uses up the gain",
        ),
        ((20, 200, 10), "The pass alone costs more than it gives here: fewer rows, or more of them accepted."),
        ((20, 120, 60), "Pass and draft would pay, the work around them uses up the gain."),
        ((20, 200, 10), "To break even it would have to give 2.88."),
    ],
)
def test_slower_than_plain_is_said_with_its_reason(times: tuple[float, float, float], told: str) -> None:
    assert told in speed_sentence(timed(*times, 80))


def test_faster_and_even_are_not_excused() -> None:
    text = speed_sentence(timed(20, 80, 0, 80))
    assert text == (
        "1.60 × plain speed, faster: a step cost 1.25 plain tokens' time (100 ms against 80 ms) and gave 2.00 tokens; "
        "its verify pass alone cost 1.00, drafting 0.25."
    )
    assert ", about even: " in speed_sentence(timed(0, 156, 0, 80))
    assert "drafting" not in speed_sentence(timed(0, 156, 0, 80)), "nothing was drafted by a model"


def test_the_parts_of_the_sentence_multiply_to_the_measured_speedup() -> None:
    for name in ("eagle2-code-60", "medusa-chat", "eagle2-french"):
        trace = recorded(name)
        assert trace.baseline is not None
        assert trace.baseline.tokens_per_second is not None
        step_ms = sum(step.ms.total for step in trace.steps) / len(trace.steps)
        gave = (len(trace.output.token_ids) - 1) / len(trace.steps)
        assert trace.stats.speedup == pytest.approx(gave * (1000 / trace.baseline.tokens_per_second) / step_ms)
        assert f"{trace.stats.speedup:.2f} × plain speed, " in speed_sentence(trace)
        assert f" and gave {gave:.2f} tokens" in speed_sentence(trace)
        assert f"({trace.stats.mean_acceptance_length:.2f} tokens per pass without it)" in speed_sentence(trace) or (
            f"{trace.stats.mean_acceptance_length:.2f}" == f"{gave:.2f}"
        )


def test_without_baseline_or_steps_there_is_no_speedup() -> None:
    assert speed_sentence(make_trace("autoregressive", 3)) == "No speedup: this run has no baseline."
    fresh = make_trace("eagle2", 3)
    fresh = replace(fresh, steps=[], stats=replace(fresh.stats, speedup=None))
    assert speed_sentence(fresh) == "No speedup: nothing was measured yet."
    still = replace(fresh, output=replace(fresh.output, token_ids=[fresh.first_token]), baseline=None)
    found = race([still])
    assert (found.leads, found.duration_ms, found.sentences) == (
        [],
        0.0,
        ["No step was made: there is no race to see."],
    )


def test_slow_motion_leaves_each_token_on_the_screen() -> None:
    for plain_ms, factor in ((130, 1.0), (70, 0.5), (8, 0.05), (0.02, FACTORS[-1])):
        found = race([timed(0, 10 * plain_ms, 0, plain_ms)]).slow_motion
        assert found.factor == factor
        assert plain_ms / factor >= READABLE_MS or factor == FACTORS[-1]
    assert race([timed(0, 1300, 0, 130)]).slow_motion.sentence.startswith(
        "In real time the quickest lane writes a token"
    )
    assert "At 0.5 × the real speed" in race([timed(0, 700, 0, 70)]).slow_motion.sentence


def test_what_makes_lanes_less_comparable_is_noted() -> None:
    trace = recorded("eagle2-code")
    name = trace.target.device_name
    assert race([trace]).notes == [
        f"Recorded on {name}, float32, batch 1, one lane after the other; prompt passes are left out."
    ]
    elsewhere = replace(trace, target=replace(trace.target, device_name="another"))
    shorter = timed(1, 2, 3, 4)
    notes = " ".join(race([trace, elsewhere, shorter]).notes)
    assert "different devices or in different precisions" in notes
    assert "different texts" in notes


def test_several_runs_share_the_first_baseline_as_last_lane() -> None:
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    found = race([eagle, medusa])
    assert [(lane.label, lane.trace, lane.is_baseline) for lane in found.lanes] == [
        ("EAGLE-2", 0, False),
        ("Medusa", 1, False),
        ("Plain decoding", 0, True),
    ]
    assert len(found.verdicts) == 2
    each = [1000 / (trace.baseline.tokens_per_second or 1) for trace in (eagle, medusa) if trace.baseline]
    assert found.notes[1] == (
        f"Plain decoding was measured anew beside each run: {min(each):.0f} to {max(each):.0f} ms a token; its lane is "
        "the one beside EAGLE-2."
    )
    alone = replace(eagle, baseline=None)
    assert [lane.trace for lane in race([alone, medusa]).lanes] == [0, 1, 1]
    assert len(race([alone, medusa]).notes) == 1, "one baseline is the one that is shown"


def test_a_lane_has_its_text_as_far_as_the_record_has_it() -> None:
    trace = recorded("medusa-code")
    lane, plain = race([trace]).lanes
    assert lane.tokens == plain.tokens == trace.output.token_ids
    assert (lane.text_note, plain.text_note) == ("", "")
    assert trace.stats.speedup is not None
    assert (lane.result, lane.is_slower) == (f"{trace.stats.speedup:.2f} × its plain run", trace.stats.speedup < 1)
    assert not race([recorded("eagle2-code")]).lanes[0].is_slower
    assert trace.baseline is not None
    parted = replace(trace.baseline, output_equal=False, first_divergence=Divergence(5, 7, 8, 0.01))
    plain = race([replace(trace, baseline=parted)]).lanes[1]
    assert plain.tokens == [*trace.output.token_ids[:5], 8]
    assert "From here on the texts differ" in plain.text_note
    sampled = replace(trace.baseline, output_equal=None)
    plain = race([replace(trace, baseline=sampled)]).lanes[1]
    assert plain.tokens == []
    assert "not its text" in plain.text_note


def test_what_is_called_out_while_the_clock_runs() -> None:
    found = race([recorded("eagle2-maths"), recorded("medusa-maths")])
    assert [ms for ms, _ in found.calls] == [0.0, *(ms for ms, _ in found.leads)]
    assert "nobody leads yet" in found.calls[0][1]
    assert found.calls[1][1] == f"{found.lanes[found.leads[0][1]].label} leads."
    ms, lane = found.leads[-1]
    assert found.calls[-1][1] == f"{found.lanes[lane].label} leads from {ms / 1000:.2f} s on."


def test_other_prompts_are_refused() -> None:
    with pytest.raises(TraceError, match="different prompts"):
        race([recorded("eagle2-code"), recorded("eagle2-chat")])
