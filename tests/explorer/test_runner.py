"""Whole runs on golden models: the events, the trace, the comparison, the device given back however a run ends."""

import dataclasses
import threading

import pytest
import torch

from explorer import runner as module
from explorer.config import Sampling
from explorer.engine import Decoding
from explorer.errors import CheckpointError, DeviceError, PromptError
from explorer.metrics import compute_stats
from explorer.runner import Runner
from explorer.runner_events import BaselineProgress, DeviceState, Finished, RunRequest, Started, Status, Stepped, drain
from explorer.text import decode
from explorer.trace import Output, from_json, to_json
from explorer.trace_check import check_trace
from tests.support.goldens import FOLDER, golden, golden_target

PAIRS = {
    "eagle2": ("base_a", "eagle_bias"),
    "medusa": ("base_b", "medusa_b"),
    "draft_model": ("base_a", "medusa_c"),
    "lookahead": ("base_b", None),
    "autoregressive": ("base_a", None),
}


def request(method="eagle2", **changes):
    target, drafter = PAIRS[method]
    given = {"prompt": "Count the red cats"} if not {"prompt_ids", "messages"} & set(changes) else {}
    settings = {"total_tokens": 12} if method in ("eagle2", "medusa") else {}
    values = {"target": str(FOLDER / target), "drafter": drafter and str(FOLDER / drafter), "settings": settings}
    return RunRequest(method, **(values | given | {"max_new_tokens": 24} | changes))


@pytest.fixture(scope="module")
def runner():
    return Runner()


def finished(events):
    return next(event.trace for event in events if isinstance(event, Finished))


def test_measuring_takes_its_turn_on_the_device(runner):
    events, wanted = [], request()
    run = runner.run(wanted)
    next(run)
    work = runner.measure(wanted, ["eagle2"])
    assert next(work) == Status("waiting for the device: 1 ahead")
    run.close()
    report = drain(work, events.append)
    assert report.methods == {} and report.cost.verify_at(8) > 0  # the golden drafter brings no profile
    assert max(event.fraction or 0 for event in events) > 0
    assert report.kernels is not None and report.kernels.commits
    assert finished(runner.run(wanted)).stats.num_steps > 0


def test_an_adaptive_run_rests_and_keeps_its_output(runner):
    """On a tiny target a plain pass is so cheap that drafting never pays: the baseline lane tells the policy."""
    wanted = request(max_new_tokens=40, ignore_stop=True)
    plain, adaptive = (finished(runner.run(dataclasses.replace(wanted, is_adaptive=on))) for on in (False, True))
    rested = [step for step in adaptive.steps if step.plain_reason == "fallback"]
    assert rested and all(step.extra["fallback"]["needed"] > 1 for step in rested)
    assert not any(step.plain_reason for step in plain.steps)
    assert adaptive.output.token_ids == plain.output.token_ids and adaptive.baseline.output_equal


@pytest.mark.parametrize("method", PAIRS)
def test_a_run(runner, method):
    events = list(runner.run(request(method)))
    kinds = [type(event) for event in events if not isinstance(event, Status)]
    trace, start = events[-1].trace, next(event.trace for event in events if isinstance(event, Started))
    stepped = [event for event in events if isinstance(event, Stepped)]
    assert kinds[-1] is Finished and kinds.index(Started) < kinds.index(Stepped)
    assert trace.steps == [event.step for event in stepped] and start.steps == []
    labels = dict(start.vocab)
    for event in stepped:
        assert not set(labels) & set(event.vocab)
        labels |= event.vocab
    assert labels == trace.vocab and {str(i) for i in trace.prompt.token_ids} <= set(labels)
    assert stepped[-1].text == trace.output.text
    assert from_json(to_json(trace)) == trace
    if method == "autoregressive":
        assert trace.baseline is None and trace.stats.mean_acceptance_length == 1.0
    else:
        assert BaselineProgress in kinds[: kinds.index(Started)]
        assert trace.baseline.output_equal is True and trace.baseline.first_divergence is None
        assert len(trace.baseline.ms_per_token) == len(trace.output.token_ids) - 1
        assert trace.stats.speedup == pytest.approx(trace.stats.tokens_per_second / trace.baseline.tokens_per_second)
        assert trace.drafter.num_parameters > 0 if method != "lookahead" else trace.drafter is None


@pytest.mark.parametrize("method", ["eagle2", "medusa"])
def test_goldens_through_prompt_ids(runner, method):
    figures = golden(f"hf_greedy__{PAIRS[method][0]}")
    for number in ("00", "02", "08"):
        name = f"{PAIRS[method][0][-1]}{number}"
        expected = next(r["output"] for r in figures["runs"] if r["prompt"] == name and r["mode"] == "eos")
        ids = tuple(figures["prompts"][name]["ids"])
        wanted = request(method, prompt_ids=ids, max_new_tokens=figures["max_new_tokens"], baseline=False)
        assert finished(runner.run(wanted)).output.token_ids == expected


@pytest.mark.parametrize("method", PAIRS)
def test_a_sampled_run_records_its_draws_and_repeats(runner, method):
    temperature = 0.9 if method == "lookahead" else 2.0  # hotter, no n-gram ever comes back
    wanted = request(method, sampling=Sampling(temperature, top_p=0.98, seed=5))
    trace = finished(runner.run(wanted))
    again = finished(runner.run(wanted))
    assert from_json(to_json(trace)) == trace
    assert [(s.tree, s.draws, s.emitted) for s in again.steps] == [(s.tree, s.draws, s.emitted) for s in trace.steps]
    assert trace.output.token_ids != finished(runner.run(request(method))).output.token_ids
    assert dataclasses.asdict(trace.sampling) == {
        "temperature": temperature, "top_p": 0.98, "top_k": 0, "seed": 5, "acceptance": "rejection",
    }  # fmt: skip
    draws = [draw for step in trace.steps for draw in step.draws]
    assert all(draw.uniform is not None and draw.threshold is None for draw in draws)
    for draw in draws:
        assert (draw.residual_mass is None) == draw.accepted == (not draw.residual_top)
    if method != "autoregressive":
        assert {draw.accepted for draw in draws} == {True, False}
        assert trace.baseline.output_equal is None and trace.baseline.first_divergence is None
        assert trace.stats.speedup is not None
    else:
        assert draws == []


def test_a_typical_run_is_verified_by_thresholds_and_not_compared(runner):
    settings = {"total_tokens": 30, "threshold": 0.2, "alpha": 0.4}
    trace = finished(runner.run(request("medusa", sampling=Sampling(0.7, acceptance="typical"), settings=settings)))
    assert from_json(to_json(trace)) == trace
    assert trace.sampling.acceptance == "typical" and trace.settings["threshold"] == 0.2
    draws = [draw for step in trace.steps for draw in step.draws]
    assert draws and all(draw.uniform is None and 0 < draw.threshold <= 0.2 for draw in draws)
    assert trace.baseline.output_equal is None


def test_sampled_drafts_say_so(runner):
    changes = {"sampling": Sampling(0.9), "settings": {}, "baseline": False}
    drawn = finished(runner.run(dataclasses.replace(request("eagle2", **changes), method="eagle1")))
    assert all(step.extra == {"sampled": True} for step in drawn.steps if step.num_drafted)
    ranked = finished(runner.run(request("eagle2", **changes)))
    assert all(step.extra == {} for step in ranked.steps), "EAGLE-2's tree is the same whatever is drawn"


def test_slots_give_the_same_run_and_the_trace_says_so(runner):
    rows, slots = (finished(runner.run(request("medusa", cache=cache))) for cache in ("rows", "slots"))
    assert (rows.target.cache, slots.target.cache) == ("rows", "slots")
    assert slots.output == rows.output
    assert [step.path for step in slots.steps] == [step.path for step in rows.steps]
    assert slots.baseline.output_equal is True


def test_no_baseline(runner):
    events = list(runner.run(request(baseline=False)))
    assert not any(isinstance(event, BaselineProgress) for event in events)
    assert finished(events).baseline is None and finished(events).stats.speedup is None


def test_one_token_has_no_steps(runner):
    trace = finished(runner.run(request(max_new_tokens=1)))
    assert trace.steps == [] and trace.stop == "max_new_tokens" and trace.stats.mean_acceptance_length is None
    assert trace.baseline.output_equal and from_json(to_json(trace)) == trace


def test_a_divergence_is_recorded_with_its_gap(runner, monkeypatch):
    plain = finished(runner.run(request("autoregressive"))).output.token_ids
    prefill = Decoding.prefill

    def astray(self):
        prefill(self)
        if self._method.name == "eagle2":
            self.output[0] = (plain[0] + 1) % 300

    monkeypatch.setattr(Decoding, "prefill", astray)
    trace = finished(runner.run(request()))
    found = trace.baseline.first_divergence
    assert trace.baseline.output_equal is False and (found.index, found.baseline_token) == (0, plain[0])
    assert found.gap > 0 and str(plain[0]) in trace.vocab


def test_a_closed_run_frees_the_device_and_leaves_a_valid_beginning(runner):
    steps, start = [], None
    events = runner.run(request(ignore_stop=True, max_new_tokens=60))
    for event in events:
        if isinstance(event, Started):
            start = event.trace
        elif isinstance(event, Stepped):
            steps.append(event)
            if len(steps) == 2:
                break
    events.close()
    tokens = [start.first_token, *(token for event in steps for token in event.step.emitted)]
    vocab = start.vocab | steps[0].vocab | steps[1].vocab
    partial = dataclasses.replace(
        start,
        steps=[event.step for event in steps],
        vocab=vocab,
        output=Output(tokens, steps[-1].text),
        stats=compute_stats([event.step for event in steps], len(tokens), None),
    )
    check_trace(start)
    check_trace(partial)
    assert partial.stop == "cancelled"
    assert steps[-1].text == decode(golden_target("base_a").tokenizer, tokens)
    assert next(runner.run(request())) != Status("waiting for the device: 1 ahead")


@pytest.mark.parametrize("until", [Status, BaselineProgress, Started])
def test_closing_at_any_event_frees_the_device(until):
    runner = Runner()
    events = runner.run(request())
    assert any(isinstance(event, until) for event in events)
    events.close()
    assert isinstance(finished(runner.run(request(max_new_tokens=2))).stop, str)


def test_runs_wait_for_each_other_in_order(runner):
    first = runner.run(request())
    next(first)
    second, third = runner.run(request()), runner.run(request())
    waits = next(second)
    assert (waits, waits.num_ahead) == (Status("waiting for the device: 1 ahead"), 1)
    assert runner.state() == DeviceState(is_loaded=True, is_busy=True, num_waiting=1)
    assert next(third) == Status("waiting for the device: 2 ahead")
    second.close()
    assert next(third) == Status("waiting for the device: 1 ahead")
    results = []
    thread = threading.Thread(target=lambda: results.append(finished(third)))
    thread.start()
    first.close()
    thread.join(60)
    assert results[0].stop in ("eos", "max_new_tokens")


def test_a_refused_run_frees_the_device(runner):
    for changes, error in (
        ({"prompt": "x " * 5000}, PromptError),
        ({"drafter": str(FOLDER / "medusa_a")}, CheckpointError),
        ({"target": "/nowhere/at/all"}, CheckpointError),
    ):
        with pytest.raises(error):
            list(runner.run(request(**changes)))
    assert finished(runner.run(request(max_new_tokens=2)))


def test_out_of_memory_is_a_sentence(runner, monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Decoding, "prefill", fail)
    with pytest.raises(DeviceError, match="out of memory"):
        list(runner.run(request()))
    monkeypatch.undo()
    assert finished(runner.run(request(max_new_tokens=2)))


def test_numbers_that_are_not_finite_in_the_prompt_pass(runner, monkeypatch):
    monkeypatch.setattr("explorer.engine.is_finite", lambda _: False)
    with pytest.raises(DeviceError, match="not finite"):
        list(runner.run(request()))


def test_pairs_and_token_lists_in_extra_are_tokens():
    extra = {
        "heads": [[[5, 0.5], [6, 0.25]], []],
        "counts": [1, 2],
        "flag": True,
        "name": "x",
        "deep": {"a": [[7, 1.0]]},
        "guess_tokens": [[8, 9], []],
        "pool_size": 4,
    }
    assert module._extra_ids(extra) == {5, 6, 7, 8, 9}


def test_a_warm_up_changes_nothing(runner, monkeypatch):
    warm = finished(runner.run(request()))
    monkeypatch.setattr(module, "NUM_WARM_UP_STEPS", 0)
    cold = finished(runner.run(request()))
    assert cold.output == warm.output
    assert [step.path for step in cold.steps] == [step.path for step in warm.steps]
