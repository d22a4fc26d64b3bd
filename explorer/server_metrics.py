"""The metrics page of a vLLM or SGLang server, or of this app, read for what it says of drafts.

vLLM counts ``vllm:spec_decode_num_drafts``, ``..._num_draft_tokens``, ``..._num_accepted_tokens`` and
``..._num_accepted_tokens_per_pos`` by model_name, engine and position (vllm/v1/spec_decode/metrics.py). SGLang has the
gauges ``sglang:spec_accept_length`` and ``sglang:spec_accept_rate``, and counts ``sglang:spec_verify_calls``,
``sglang:generation_tokens`` and ``sglang:num_requests`` (python/sglang/srt/observability/metrics_collector.py). This
app's own names are vLLM's behind ``draft_tree_``. Counters are read with and without ``_total``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from explorer.endpoints import MAX_SHOWN
from explorer.errors import SettingError
from explorer.server_figures import OURS, SGLANG, VLLM, Counts, Reading, Series

MAX_SERIES = 200
MAX_POSITIONS = 1024
MAX_VALUE = 2.0**53  # beyond it a counter could not count one more
_SPEC_DECODE = {
    "num_drafts": "steps",
    "num_draft_tokens": "drafted",
    "num_accepted_tokens": "accepted",
}
_SGLANG = {
    "sglang:spec_verify_calls": "steps",
    "sglang:generation_tokens": "tokens",
    "sglang:num_requests": "requests",
}
_GAUGES = {"sglang:spec_accept_length": "gauge_tau", "sglang:spec_accept_rate": "gauge_rate"}
_PREFIXES = {"vllm:spec_decode_": VLLM, "draft_tree_spec_decode_": OURS}
_PER_POSITION = "num_accepted_tokens_per_pos"


@dataclass
class _Sums:
    """Samples of one series, added up: labels that we do not tell apart (ranks, streaming or not) are summed."""

    counted: dict[str, float] = field(default_factory=dict)
    by_position: dict[int, float] = field(default_factory=dict)
    gauges: dict[str, list[float]] = field(default_factory=dict)

    def counts(self) -> Counts:
        means = {name: sum(values) / len(values) for name, values in self.gauges.items() if values}
        return Counts(**self.counted, **means, by_position=self.by_position)


def read_page(text: str, where: str, seconds: float) -> Reading:
    """What a page in Prometheus' text format says; SettingError where it is none, or says nothing of drafts."""
    sums: dict[Series, _Sums] = {}
    try:
        for name, labels, value in _samples(text):
            _take(sums, name, labels, value)
            if len(sums) > MAX_SERIES:
                raise SettingError(f"{where} tells of more than {MAX_SERIES} models and engines: name one server")
    except (ValueError, KeyError, IndexError, TypeError) as error:
        told = " ".join(str(error).split())[:MAX_SHOWN]
        raise SettingError(f"{where} is no page in Prometheus' format: {told}") from error
    counts = {series: found for series, item in sums.items() if _tells(found := item.counts())}
    if not counts and any(prefix in text for prefix in _PREFIXES):
        raise SettingError(f"{where} counts drafts and has had none yet: look again after a run")
    if not counts:
        raise SettingError(
            f"{where} says nothing of drafts: is speculative decoding on (and, in SGLang, --enable-metrics)?"
        )
    return Reading(seconds, counts)


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if 0 <= sample.value <= MAX_VALUE:  # neither nan nor infinite
                yield sample.name.removesuffix("_total"), sample.labels, float(sample.value)


def _take(sums: dict[Series, _Sums], name: str, labels: Mapping[str, str], value: float) -> None:
    for prefix, server in _PREFIXES.items():
        if name.startswith(prefix):
            _take_counter(sums, server, name.removeprefix(prefix), labels, value)
            return
    if name not in _SGLANG and name not in _GAUGES:
        return
    item = sums.setdefault(Series(SGLANG, labels.get("model_name", "")), _Sums())
    if counted := _SGLANG.get(name):
        item.counted[counted] = item.counted.get(counted, 0.0) + value
    elif value:  # a rank that has nothing to say says 0
        item.gauges.setdefault(_GAUGES[name], []).append(value)


def _take_counter(sums: dict[Series, _Sums], server: str, name: str, labels: Mapping[str, str], value: float) -> None:
    if name not in _SPEC_DECODE and name != _PER_POSITION:
        return
    called = labels.get("method" if server == OURS else "model_name", "")
    item = sums.setdefault(Series(server, called, labels.get("engine", "")), _Sums())
    if counted := _SPEC_DECODE.get(name):
        item.counted[counted] = item.counted.get(counted, 0.0) + value
    elif (place := labels.get("position", "")).isascii() and place.isdigit() and int(place) < MAX_POSITIONS:
        item.by_position[int(place)] = item.by_position.get(int(place), 0.0) + value


def _tells(counts: Counts) -> bool:
    """Whether it tells of drafts: a server without them counts tokens and requests all the same."""
    return any(value is not None for value in (counts.steps, counts.accepted, counts.gauge_tau))
