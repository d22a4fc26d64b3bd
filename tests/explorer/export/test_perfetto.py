"""The timeline: every measured part once, end to end, both lanes on one axis."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from explorer.export.perfetto import BASELINE, COMMIT, DRAFT, METHOD, OTHER, PLAIN, PROMPT, STEPS, VERIFY, chrome_trace
from tests.support.traces import make_trace

TRACE = make_trace("eagle2", 6, 24)


def events(trace, phase="X"):
    return [event for event in json.loads(chrome_trace(trace))["traceEvents"] if event["ph"] == phase]


def lane(trace, process, thread):
    return [event for event in events(trace) if (event["pid"], event["tid"]) == (process, thread)]


def durations(found):
    return [event["dur"] / 1000 for event in found]


def test_lanes_hold_the_recorded_milliseconds():
    steps = TRACE.steps
    assert durations(lane(TRACE, METHOD, DRAFT)) == pytest.approx([ms for s in steps for ms in s.ms.draft], abs=2e-6)
    for thread, name in ((VERIFY, "verify"), (COMMIT, "commit"), (OTHER, "other"), (STEPS, "total")):
        expected = [getattr(step.ms, name) for step in steps]
        assert durations(lane(TRACE, METHOD, thread)) == pytest.approx(expected, abs=2e-6)
    assert durations(lane(TRACE, BASELINE, PLAIN)) == pytest.approx(TRACE.baseline.ms_per_token, abs=2e-6)
    prompt = [TRACE.prefill_ms.target, TRACE.prefill_ms.drafter]
    assert durations(lane(TRACE, METHOD, PROMPT)) == pytest.approx(prompt, abs=2e-6)


def test_every_lane_has_a_name():
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events(TRACE, "M") if e["name"] == "thread_name"}
    assert names.keys() == {(event["pid"], event["tid"]) for event in events(TRACE)}
    assert [names[METHOD, t] for t in (DRAFT, VERIFY, COMMIT, OTHER)] == ["draft passes", "verify", "commit", "other"]
    processes = [e["args"]["name"] for e in events(TRACE, "M") if e["name"] == "process_name"]
    assert processes == ["eagle2", "plain decoding (baseline)"]


def test_both_lanes_start_where_the_prompt_pass_ends():
    start = 1000 * (TRACE.prefill_ms.target + TRACE.prefill_ms.drafter)
    assert lane(TRACE, METHOD, STEPS)[0]["ts"] == pytest.approx(start)
    assert lane(TRACE, BASELINE, PLAIN)[0]["ts"] == pytest.approx(start)


def test_blocks_of_a_lane_never_overlap_and_parts_fill_their_step():
    for process, thread in {(event["pid"], event["tid"]) for event in events(TRACE)}:
        blocks = lane(TRACE, process, thread)
        for one, other in pairwise(blocks):
            assert round(one["ts"] + one["dur"], 3) <= other["ts"]
    parts = [event for event in events(TRACE) if event["pid"] == METHOD and event["tid"] > STEPS]
    parts.sort(key=lambda event: (event["ts"], event["tid"]))
    for one, other in pairwise(parts):
        assert other["ts"] == pytest.approx(one["ts"] + one["dur"], abs=0.002)
    for block in lane(TRACE, METHOD, STEPS):
        number = int(block["name"].split(":")[0].removeprefix("step "))
        own = [part for part in parts if part["args"]["step"] == number]
        assert own[0]["ts"] == pytest.approx(block["ts"], abs=0.002)
        assert own[-1]["ts"] + own[-1]["dur"] == pytest.approx(block["ts"] + block["dur"], abs=0.002)


def test_the_race_is_a_counter_that_ends_with_the_output():
    for process in (METHOD, BASELINE):
        counts = [event for event in events(TRACE, "C") if event["pid"] == process]
        values = [event["args"]["tokens"] for event in counts]
        assert values[0] == 1 and values == sorted(values) and values[-1] == len(TRACE.output.token_ids)
        assert [event["ts"] for event in counts] == sorted(event["ts"] for event in counts)
    decode = 1000 * sum(step.ms.total for step in TRACE.steps)
    ends = [event["ts"] for event in events(TRACE, "C") if event["pid"] == METHOD]
    assert ends[-1] - ends[0] == pytest.approx(decode, abs=0.01)


def test_a_step_says_what_it_did():
    block, step = lane(TRACE, METHOD, STEPS)[1], TRACE.steps[1]
    assert block["name"] == f"step 2: +{len(step.emitted)}"
    assert block["args"]["emitted"] == [TRACE.vocab[str(token)].label for token in step.emitted]
    assert (block["args"]["drafted"], block["args"]["accepted"]) == (step.num_drafted, step.num_accepted)
    assert lane(TRACE, METHOD, VERIFY)[1]["name"] == f"verify {len(step.tree)} rows"


def test_without_a_baseline_there_is_one_group_of_lanes():
    trace = replace(TRACE, baseline=None)
    assert {event["pid"] for event in json.loads(chrome_trace(trace))["traceEvents"]} == {METHOD}


def test_a_run_without_a_drafter_or_steps():
    plain = make_trace("autoregressive", 3)
    assert Counter(event["tid"] for event in events(plain)) == {PROMPT: 1, STEPS: 3, VERIFY: 3, COMMIT: 3, OTHER: 3}
    empty = make_trace("eagle2", 0)
    assert lane(empty, METHOD, STEPS) == [] and len(lane(empty, METHOD, PROMPT)) == 2


def test_hostile_labels_are_json_text_without_invisible_characters():
    text = chrome_trace(make_trace("eagle2", 6, 30, hostile=True))
    assert json.loads(text)["displayTimeUnit"] == "ms"
    assert not set(text) & set("\0\u202e\u202c\u200b")
