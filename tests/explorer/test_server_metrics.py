"""Metrics pages of vLLM, SGLang and this app, and pages that are none."""

from __future__ import annotations

import pytest

from explorer.errors import SettingError
from explorer.server_figures import OURS, SGLANG, VLLM, Counts, Series
from explorer.server_metrics import read_page
from explorer.service.prometheus import RunMetrics
from explorer.service.served_runner import RunReport
from tests.support import server_pages
from tests.support.traces import make_trace


def test_vllms_engines_are_told_apart() -> None:
    counts = read_page(server_pages.VLLM, "u", 0.0).counts
    assert set(counts) == {Series(VLLM, "llama", "0"), Series(VLLM, "llama", "1")}
    first = counts[Series(VLLM, "llama", "0")]
    assert first == Counts(100, 300, 120, by_position={0: 70, 1: 35, 2: 15})


def test_counters_are_read_without_total_as_well() -> None:
    bare = "\n".join(line for line in server_pages.VLLM.splitlines() if not line.startswith("#")).replace(
        "_total{", "{"
    )
    assert read_page(bare + "\n", "u", 0.0).counts == read_page(server_pages.VLLM, "u", 0.0).counts


def test_sglangs_ranks_and_streams_are_one() -> None:
    split = server_pages.SGLANG.replace(
        'sglang:num_requests_total{model_name="qwen"} 10.0',
        'sglang:num_requests_total{is_streaming="true",model_name="qwen"} 6.0\n'
        'sglang:num_requests_total{is_streaming="false",model_name="qwen"} 4.0',
    )
    for page in (server_pages.SGLANG, split):
        counts = read_page(page, "u", 0.0).counts
        assert counts == {
            Series(SGLANG, "qwen"): Counts(steps=300, tokens=910, requests=10, gauge_tau=2.5, gauge_rate=0.5)
        }
    ranks = (
        server_pages.SGLANG_GAUGES + server_pages.SGLANG_GAUGES.split("\n")[2].replace('"0"} 2.5', '"1"} 3.5') + "\n"
    )
    (found,) = read_page(ranks, "u", 0.0).counts.values()
    assert found.gauge_tau == 3.0


def test_this_apps_own_page_is_read() -> None:
    metrics = RunMetrics()
    trace = make_trace("eagle2", 4)
    report = RunReport("1", "eagle2", "t")
    for step in trace.steps:
        metrics.saw_step(report, step)
    (series,), (counts,) = zip(*read_page(metrics.text().decode(), "u", 0.0).counts.items(), strict=True)
    assert series == Series(OURS, "eagle2")
    whole = [step for step in trace.steps if not step.is_cut and step.num_drafted]
    assert (counts.steps, counts.accepted) == (len(whole), sum(step.num_accepted for step in whole))


def test_an_app_before_its_first_run_is_told_from_one_that_never_drafts() -> None:
    with pytest.raises(SettingError, match="has had none yet: look again after a run"):
        read_page(RunMetrics().text().decode(), "u", 0.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "says nothing of drafts"),
        (server_pages.WITHOUT_DRAFTS, "says nothing of drafts"),
        ("<html><body>hello</body></html>", "no page in Prometheus' format|says nothing"),
        ("vllm:spec_decode_num_drafts_total{engine=} x\n", "no page in Prometheus' format"),
        (
            "".join(f'vllm:spec_decode_num_drafts_total{{model_name="m{n}"}} 1\n' for n in range(300)),
            "more than 200 models",
        ),
    ],
    ids=["empty", "plain", "html", "broken", "many"],
)
def test_other_pages_are_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(SettingError, match=says) as caught:
        read_page(text, "http://u/metrics", 0.0)
    assert "\n" not in str(caught.value)


def test_odd_values_and_positions_are_passed_over() -> None:
    odd = server_pages.VLLM + (
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="llama",position="99999"} 5\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="llama",position="x"} 5\n'
        'vllm:spec_decode_num_drafts_total{engine="0",model_name="llama"} NaN\n'
        'vllm:spec_decode_num_drafts_total{engine="0",model_name="llama"} -4\n'
    )
    assert read_page(odd, "u", 0.0).counts == read_page(server_pages.VLLM, "u", 0.0).counts
