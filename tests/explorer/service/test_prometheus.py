"""Metrics: vLLM's counters with our prefix, equal to what the export says of the same run; the sample alerts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from explorer.export.stats import stats_json
from explorer.runner_events import DeviceState
from explorer.service.prometheus import CONTENT_TYPE, PREFIX, RunMetrics
from explorer.service.served_runner import RunReport
from explorer.trace import Trace
from tests.structure.source import ROOT
from tests.support.traces import make_trace


def told(metrics: RunMetrics) -> dict[tuple[str, ...], float]:
    """(name, label values by name) -> value of every sample."""
    families = text_string_to_metric_families(metrics.text().decode())
    samples = [one for family in families for one in family.samples]
    return {(one.name, *(value for _, value in sorted(one.labels.items()))): one.value for one in samples}


def play(metrics: RunMetrics, trace: Trace, waited_s: float = 0.0) -> None:
    report = RunReport("1", trace.method, "a prompt's target", waited_s=waited_s, seconds=3.0, stop=trace.stop)
    report.num_tokens = len(trace.output.token_ids)
    for step in trace.steps:
        metrics.saw_step(report, step)
    metrics.saw_end(report)


@pytest.mark.parametrize("method", ["eagle2", "medusa", "autoregressive"])
def test_the_counters_are_vllms(method: str) -> None:
    metrics, trace = RunMetrics(), make_trace(method, 9, 14)
    play(metrics, trace)
    expected: dict[str, Any] = json.loads(stats_json(trace))["vllm"]["metrics"]
    values = told(metrics)
    for name, value in expected.items():
        ours = name.replace("vllm:", f"{PREFIX}_") + "_total"
        if isinstance(value, list):
            found = [values[ours, method, str(position)] for position in range(len(value))]
            assert found == value
            assert (ours, method, str(len(value))) not in values
        else:
            assert values.get((ours, method), 0.0) == value
    assert values[f"{PREFIX}_generation_tokens_total", method] == len(trace.output.token_ids)  # as the log says


def test_a_refused_run_gave_out_no_token() -> None:
    metrics = RunMetrics()
    metrics.saw_end(RunReport("1", "eagle2", "a target", stop="refused"))
    assert (f"{PREFIX}_generation_tokens_total", "eagle2") not in told(metrics)


def test_runs_times_queue_and_traces() -> None:
    metrics = RunMetrics()
    metrics.watch_device(lambda: DeviceState(True, True, 2), lambda: 5)
    metrics.watch_traces(lambda: 3, lambda: 4096)
    play(metrics, make_trace("medusa", 2, 8), waited_s=1.5)
    values = told(metrics)
    assert values[f"{PREFIX}_runs_total", "medusa", "max_new_tokens"] == 1
    assert values[f"{PREFIX}_run_seconds_bucket", "2.0", "medusa"] == 0
    assert values[f"{PREFIX}_run_seconds_bucket", "4.0", "medusa"] == 1
    assert values[f"{PREFIX}_run_wait_seconds_sum",] == 1.5
    assert values[f"{PREFIX}_runs_waiting",] == 7
    assert values[f"{PREFIX}_device_busy",] == 1
    assert (values[f"{PREFIX}_kept_traces",], values[f"{PREFIX}_kept_trace_bytes",]) == (3, 4096)
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_nothing_but_our_own_metrics_is_told() -> None:
    assert all(name.startswith(f"{PREFIX}_") for name, *_ in told(RunMetrics()))


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "assets" / "operate" / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_sample_alerts_are_silent_at_what_the_shipped_drafters_reach() -> None:
    report = json.loads((ROOT / "assets" / "bench" / "spec-bench.json").read_text(encoding="utf-8"))
    quiet = []
    for rule in rules():
        methods, bound = re.search(r'method=~"([^"]+)"', rule["expr"]), re.search(r"< ([\d.]+)\s*$", rule["expr"])
        if methods and bound:
            lanes = [name for name in report["methods"] if ":" not in name]  # others are a method's other trees
            for name in filter(re.compile(methods[1]).fullmatch, lanes):
                is_first = 'position="0"' in rule["expr"]
                lane = report["methods"][name]
                normal = lane["acceptance_by_depth"][0] if is_first else lane["draft_acceptance_rate"]
                assert normal > float(bound[1]), (rule["alert"], name)
                quiet.append(name)
    assert sorted(quiet) == ["draft_model", "eagle1", "eagle2", "prompt_lookup"]


def test_the_sample_alerts_use_metrics_that_exist() -> None:
    metrics = RunMetrics()
    metrics.watch_device(lambda: DeviceState(True), lambda: 0)
    metrics.watch_traces(lambda: 0, lambda: 0)
    play(metrics, make_trace("eagle2", 9, 14))
    known = {name for name, *_ in told(metrics)}
    used = {name for rule in rules() for name in re.findall(rf"{PREFIX}_\w+", rule["expr"])}
    assert used
    assert used <= known
    assert any("< 0.45" in rule["expr"] for rule in rules())
    assert all({"alert", "expr", "for", "annotations"} <= rule.keys() for rule in rules())
