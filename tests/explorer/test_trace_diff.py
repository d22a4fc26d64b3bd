"""Two runs aligned: leads and gains add up, the split is found and explained, other prompts are refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from explorer.errors import TraceError
from explorer.trace import Divergence, Trace
from explorer.trace_diff import diff_traces, logit_gap
from tests.support.recorded import plain, recorded
from tests.support.traces import make_trace


def parted(trace: Trace, step: int) -> Trace:
    """The run as if its step ``step`` had written another last token and ended there."""
    steps = [*trace.steps[:step], replace(trace.steps[step], next_token=1)]
    steps[-1] = replace(steps[-1], emitted=[*steps[-1].emitted[:-1], 1])
    tokens = [trace.first_token, *(token for each in steps for token in each.emitted)]
    return replace(trace, steps=steps, output=replace(trace.output, token_ids=tokens))


def test_equal_texts_have_no_split_and_their_leads_add_up() -> None:
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    diff, size = diff_traces(eagle, medusa), len(eagle.output.token_ids)
    assert (diff.split, diff.num_common, diff.labels) == (None, size, ("EAGLE-2", "Medusa"))
    assert len(diff.lead_passes) == len(diff.lead_ms) == size
    assert (diff.lead_passes[0], diff.lead_ms[0]) == (0, 0.0)
    assert diff.lead_passes[-1] == len(medusa.steps) - len(eagle.steps)
    assert sum(gain.gain_passes for gain in diff.gains) == diff.lead_passes[-1]
    assert sum(gain.gain_ms for gain in diff.gains) == pytest.approx(diff.lead_ms[-1])
    assert [gain.step for gain in diff.gains] == list(range(len(eagle.steps)))
    assert sum(gain.num_tokens for gain in diff.gains) == size - 1
    times = {gain.step: gain.gain_ms for gain in diff.gains}
    for gain in diff.gains:
        step = eagle.steps[gain.step]
        assert f"wrote {len(step.emitted)} token" in gain.sentence
        assert f" in {step.ms.total:.0f} ms; Medusa took {gain.gain_passes + 1} pass" in gain.sentence
        assert gain.sentence.endswith(f": {abs(gain.gain_ms):.0f} ms {'gained' if gain.gain_ms >= 0 else 'lost'}.")
    assert times[diff.best or 0] == max(times.values())
    assert times[diff.worst or 0] == min(times.values())
    seconds = [sum(step.ms.total for step in trace.steps) / 1000 for trace in (eagle, medusa)]
    assert diff.sentences == [
        f"Both write the same {size} tokens.",
        f"For the {size} tokens they share, EAGLE-2 needed {len(eagle.steps)} passes and {seconds[0]:.2f} s, "
        f"Medusa {len(medusa.steps)} passes and {seconds[1]:.2f} s.",
    ]


def test_the_other_way_round_is_the_mirror() -> None:
    eagle, medusa = recorded("eagle2-code"), recorded("medusa-code")
    there, back = diff_traces(eagle, medusa), diff_traces(medusa, eagle)
    assert back.lead_passes == [-lead for lead in there.lead_passes]
    assert back.lead_ms == pytest.approx([-lead for lead in there.lead_ms])


def test_a_split_is_told_with_the_gap_of_the_record() -> None:
    trace = make_trace("eagle2", 9, 20, seed=4)
    other = parted(trace, 5)
    diff = diff_traces(trace, other)
    place = len(other.output.token_ids) - 1
    step = trace.steps[5]
    (_, first), (_, second), *_ = step.tree.target_top[step.path[-1]] or []
    assert diff.split is not None
    assert diff.split.index == place == diff.num_common
    assert diff.split.tokens == (trace.output.token_ids[place], 1)
    assert diff.split.gaps == (pytest.approx(math.log(first / second)), pytest.approx(math.log(first / second)))
    assert f"The texts part at token {place + 1}: EAGLE-2, run 1 writes " in diff.sentences[0]
    assert "too far for rounding" in diff.sentences[0]
    assert all(gain.step < 5 for gain in diff.gains), "gains end where the texts part"


def test_a_near_tie_is_called_one() -> None:
    trace = recorded("eagle2-code")
    other = parted(trace, 5)
    assert other.baseline is not None
    place = len(other.output.token_ids) - 1
    tied = replace(other.baseline, output_equal=False, first_divergence=Divergence(place, 1, None, 0.0004))
    other = replace(other, baseline=tied)
    assert logit_gap(other, place) == 0.0004
    assert "0.0004 logits apart: a near tie" in diff_traces(trace, other).sentences[0]


def test_a_run_that_ends_earlier_is_no_disagreement() -> None:
    trace = recorded("eagle2-code")
    short = replace(trace, steps=trace.steps[:5])
    tokens = [trace.first_token, *(token for step in short.steps for token in step.emitted)]
    diff = diff_traces(replace(short, output=replace(short.output, token_ids=tokens)), trace)
    assert diff.split is not None
    assert diff.split.tokens == (None, trace.output.token_ids[len(tokens)])
    assert f"equal as far as EAGLE-2, run 1 goes: it ends after {len(tokens)} tokens" in diff.split.sentence


def test_sampled_runs_need_not_agree() -> None:
    trace = recorded("eagle2-code")
    sampled = replace(trace, sampling=replace(trace.sampling, acceptance="rejection", temperature=1.0))
    assert "so they need not agree" in diff_traces(sampled, parted(trace, 5)).sentences[0]


def test_no_gap_is_said_where_the_record_has_none() -> None:
    trace = recorded("eagle2-code")
    assert logit_gap(trace, 0) is None, "the prompt pass keeps no favourites"
    other = replace(trace, first_token=1, output=replace(trace.output, token_ids=[1, *trace.output.token_ids[1:]]))
    diff = diff_traces(trace, other)
    assert diff.sentences[0].endswith("How close the choice was is not in the records.")
    assert (diff.num_common, diff.gains, diff.best, len(diff.sentences)) == (0, [], None, 1)


def test_other_prompts_are_refused() -> None:
    with pytest.raises(TraceError, match="different prompts"):
        diff_traces(recorded("eagle2-code"), recorded("eagle2-chat"))


def test_hostile_labels_stay_inside_their_quotes() -> None:
    trace = make_trace("eagle2", 6, 20, hostile=True)
    text = diff_traces(trace, parted(trace, 2)).sentences[0]
    assert plain(text) != text
    assert "\u202e" not in text
