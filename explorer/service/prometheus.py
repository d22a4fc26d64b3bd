"""What runs do, as Prometheus metrics: vLLM's names for speculative decoding behind our own prefix.

The four ``spec_decode`` counters count what vLLM's count (vllm/v1/spec_decode/metrics.py): drafts are steps in which
something was drafted, positions start at 0, a last step that was cut is left out. Here a draft token is a row of a
tree, so accepted / drafted is low for trees; the share of drafts whose position 0 was accepted is comparable.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from explorer.runner_events import DeviceState
from explorer.service.served_runner import RunReport
from explorer.trace import Step

PREFIX = "draft_tree"
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600)


class RunMetrics:
    """A watcher of runs with its own registry, so that nothing of the process or of other libraries is told."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._drafts = self._counter("spec_decode_num_drafts", "Steps in which something was drafted.")
        self._drafted = self._counter("spec_decode_num_draft_tokens", "Drafted rows that were verified.")
        self._accepted = self._counter("spec_decode_num_accepted_tokens", "Drafted tokens that were accepted.")
        self._per_pos = self._counter(
            "spec_decode_num_accepted_tokens_per_pos", "Accepted tokens by position in the draft.", "position"
        )
        self._tokens = self._counter("generation_tokens", "Tokens that runs gave out.")
        self._runs = self._counter("runs", "Runs that are over, by how they ended.", "stop")
        self._seconds = Histogram(
            f"{PREFIX}_run_seconds",
            "From when a run was asked for to its end.",
            ["method"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._waits = Histogram(
            f"{PREFIX}_run_wait_seconds",
            "How long runs waited for the device.",
            buckets=SECONDS,
            registry=self.registry,
        )

    def watch_device(self, state: Callable[[], DeviceState], num_queued: Callable[[], int]) -> None:
        """Tell the device's state when it is asked for; ``num_queued``: runs that have not reached the runner yet."""
        waiting = Gauge(f"{PREFIX}_runs_waiting", "Runs in line for the device.", registry=self.registry)
        waiting.set_function(lambda: state().num_waiting + num_queued())
        busy = Gauge(f"{PREFIX}_device_busy", "1 while a run has the device.", registry=self.registry)
        busy.set_function(lambda: float(state().is_busy))

    def watch_traces(self, num_traces: Callable[[], int], num_bytes: Callable[[], int]) -> None:
        """Tell what the trace store keeps."""
        kept = Gauge(f"{PREFIX}_kept_traces", "Visitors' traces in memory.", registry=self.registry)
        kept.set_function(num_traces)
        size = Gauge(f"{PREFIX}_kept_trace_bytes", "Estimated size of those traces.", registry=self.registry)
        size.set_function(num_bytes)

    def saw_step(self, report: RunReport, step: Step) -> None:
        """Count a step."""
        self._tokens.labels(report.method).inc(len(step.emitted))
        if step.is_cut or not step.num_drafted:
            return
        self._drafts.labels(report.method).inc()
        self._drafted.labels(report.method).inc(step.num_drafted)
        self._accepted.labels(report.method).inc(step.num_accepted)
        for position in range(step.num_accepted):
            self._per_pos.labels(report.method, str(position)).inc()

    def saw_end(self, report: RunReport) -> None:
        """Count a run."""
        if report.num_tokens:
            self._tokens.labels(report.method).inc()  # the prompt pass's token, which is no step's
        self._runs.labels(report.method, report.stop).inc()
        self._seconds.labels(report.method).observe(report.seconds)
        self._waits.observe(report.waited_s)

    def text(self) -> bytes:
        """All of it in Prometheus' text format, version 0.0.4."""
        return generate_latest(self.registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", help_text, ["method", *labels], registry=self.registry)
