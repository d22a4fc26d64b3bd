"""The operator's addresses beside the page: /healthz always, /metrics where it was asked for."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from explorer.service.health import Health
from explorer.service.prometheus import CONTENT_TYPE, RunMetrics

NO_CACHE = {"Cache-Control": "no-store"}


def operator_routes(health: Health, metrics: RunMetrics | None) -> list[Route]:
    """Routes for the server to put before the page's own. /healthz answers 503 once the server is stopping."""

    def healthz(_request: Request) -> Response:
        report = health.report()
        return JSONResponse(report, 503 if report["status"] == "stopping" else 200, headers=NO_CACHE)

    routes = [Route("/healthz", healthz)]
    if metrics is not None:

        def prometheus(_request: Request) -> Response:
            return Response(metrics.text(), media_type=CONTENT_TYPE, headers=NO_CACHE)

        routes.append(Route("/metrics", prometheus))
    return routes
