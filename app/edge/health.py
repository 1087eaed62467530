"""Is the process alive, may it get requests, what does it count: for orchestrators and Prometheus."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.responses import Response

from app.core.strictjson import dumps
from app.edge.facts import facts_of
from app.edge.lifespan_state import Drain
from app.edge.observability import Metrics

Check = Callable[[], Awaitable[object]]
_CHECK_S: Final = 2.0
_REUSED_S: Final = 0.5
_READY: Final = 200
_UNAVAILABLE: Final = 503


@dataclass(slots=True)
class Readiness:
    """Runs the checks side by side, each with a time limit; a check fails by raising or by returning False.

    Without any the process is not ready. Answers are reused for half a second: probes are not authenticated and must
    not become a load.
    """

    drain: Drain
    checks: dict[str, Check] = field(default_factory=dict)
    warnings: Callable[[], Sequence[str]] = tuple
    """What is late but keeps no request from being served, in words without content."""
    timeout_s: float = _CHECK_S
    _last: tuple[float, dict[str, bool]] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def begin(self, checks: Mapping[str, Check], warnings: Callable[[], Sequence[str]] = tuple) -> None:
        """Add the checks and the warnings of an application that has started."""
        self.checks.update(checks)
        self.warnings = warnings

    async def state(self) -> dict[str, bool]:
        """Return for each check whether it passed."""
        async with self._lock:
            if self._last is None or time.monotonic() - self._last[0] > _REUSED_S:
                passed = await asyncio.gather(*(self._passes(check) for check in self.checks.values()))
                self._last = (time.monotonic(), dict(zip(self.checks, passed, strict=True)))
        return {**self._last[1], "started": bool(self.checks), "not_draining": not self.drain.draining}

    async def _passes(self, check: Check) -> bool:
        try:
            async with asyncio.timeout(self.timeout_s):
                return await check() is not False
        except Exception:  # noqa: BLE001 - whatever goes wrong, the process is not ready
            return False


def in_turn(checks: Mapping[str, Check]) -> dict[str, Check]:
    """Return checks of which no two run at once: together they use one connection of a pool, open as a rule."""
    turn = asyncio.Lock()

    async def run(check: Check) -> object:
        async with turn:
            return await check()

    return {name: partial(run, check) for name, check in checks.items()}


_STATE: Final = {
    "type": "object",
    "required": ["status", "checks"],
    "properties": {
        "status": {"enum": ["ready", "unavailable"]},
        "checks": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "warnings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What is late but keeps no request from being served; absent if nothing is.",
        },
    },
}
_STATE_EXAMPLE: Final = {"status": "ready", "checks": {"database": True}}
_METRIC: Final = "sluice_requests_total 1.0\n"


def health_router(readiness: Readiness, metrics: Metrics | None) -> APIRouter:
    """Return the routes outside ``/api``; without ``metrics`` there is no ``/metrics``."""
    router = APIRouter(tags=["health"])

    @router.get("/livez", summary="Is the process alive?")
    async def livez() -> dict[str, str]:
        return {"status": "alive"}

    @router.get(
        "/readyz",
        summary="May this process get requests?",
        response_class=Response,
        responses={200: {"content": {"application/json": {"schema": _STATE, "example": _STATE_EXAMPLE}}}},
    )
    async def readyz(request: Request) -> Response:
        checks = await readiness.state()
        ready = all(checks.values())
        if not ready:
            facts_of(request.scope).error_code = "overloaded"
        body: dict[str, Any] = {"status": "ready" if ready else "unavailable", "checks": checks}
        if warnings := readiness.warnings():
            body["warnings"] = list(warnings)
        return Response(dumps(body), _READY if ready else _UNAVAILABLE, media_type="application/json")

    if metrics is not None:

        @router.get(
            "/metrics",
            summary="Counts and durations for Prometheus",
            response_class=Response,
            responses={200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": _METRIC}}}},
        )
        async def get_metrics() -> Response:
            return Response(await metrics.shown(), media_type=CONTENT_TYPE_LATEST)

    return router
