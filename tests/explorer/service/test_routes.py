"""The operator's addresses: answered before the page's own, /metrics only where it was asked for."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.testclient import TestClient

from explorer.service.health import Health
from explorer.service.prometheus import CONTENT_TYPE, RunMetrics
from explorer.service.routes import operator_routes
from explorer.service.served_runner import RunLimits, ServedRunner
from tests.support.fake_runner import FakeRunner
from tests.support.page import LARGE
from tests.support.traces import make_trace


def client(metrics: RunMetrics | None) -> tuple[TestClient, ServedRunner]:
    served = ServedRunner(FakeRunner(make_trace()), RunLimits(1, None, 1))
    return TestClient(Starlette(routes=operator_routes(Health(served, [LARGE], lambda: 0), metrics))), served


def test_health_is_json_and_503_once_it_stops() -> None:
    http, served = client(None)
    answer = http.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.headers["cache-control"] == "no-store"
    served.stop(0, 0)
    answer = http.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (503, "stopping")


def test_metrics_are_told_only_when_asked_for() -> None:
    assert client(None)[0].get("/metrics").status_code == 404
    answer = client(RunMetrics())[0].get("/metrics")
    assert answer.headers["content-type"] == CONTENT_TYPE
    assert "draft_tree_spec_decode_num_drafts_total" in answer.text
