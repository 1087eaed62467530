"""What auditors ask of a long record over REST, and how long each page takes a large tenant and a small one."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import psutil

from app.core.access import Role
from app.core.errors import ConflictError
from app.services.access.access import HOST
from app.services.access.tenants import TenantService
from tests.benchmarks.speed.database_processes import server_process, spent
from tests.benchmarks.speed.growth_fill import (
    GONE_ACTOR,
    LARGE,
    RARE_ACTION,
    RARE_ACTOR,
    RARE_MIDDLEWARE,
    SMALL,
)
from tests.benchmarks.speed.report import percentile, written
from tests.integration.rest_app import Rest, open_rest

EVENTS = "/api/v1/audit/events"
TENANTS = {"large": LARGE, "small": SMALL}
WARMING = 2
PAUSE_S = 0.01
"""Between two requests: a tenant may ask a hundred times a second."""

Query = dict[str, str]


@dataclass(frozen=True)
class Answered:
    """The milliseconds of each request, and the CPU milliseconds of one, of service and database together."""

    took: list[float]
    cpu_ms: float
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"{self.refused} after {written(self.took[0])}"
        p50, p95 = (written(percentile(self.took, part)) for part in (0.5, 0.95))
        return f"{p50} / {p95} / {written(self.cpu_ms)}"


async def asked(url: str, times: int) -> dict[tuple[str, str], Answered]:
    """Return by query and tenant what ``times`` warm requests of a page of 100 took, one after the other."""
    server = await server_process(url)
    answers: dict[tuple[str, str], Answered] = {}
    async with open_rest(url) as rest:
        for size, tenant in TENANTS.items():
            with suppress(ConflictError):
                await TenantService(rest.services.access).create(HOST, tenant)
            for name, query in (await queries(rest, tenant)).items():
                answers[name, size] = await _timed(rest, tenant, query, times, server)
    return answers


async def queries(rest: Rest, tenant: str) -> dict[str, Query]:
    """Return what is asked, by its name: each filter, whether few or many events pass it, and what goes together."""
    now = datetime.now(UTC)
    hour, day = _ago(now, 20, timedelta(hours=1)), _ago(now, 20, timedelta(days=1))
    week, month = _ago(now, 20, timedelta(days=7)), _ago(now, 45, timedelta(days=30))
    ever = {"since": (now - timedelta(days=100)).isoformat()}
    some = await _example(rest, tenant)
    usual = {"actor": "key-0"}
    return {
        "the newest": {},
        "a usual actor": usual,
        "a rare actor": {"actor": RARE_ACTOR},
        "a rare actor, ever": {"actor": RARE_ACTOR, **ever},
        "an actor of 80 days ago": {"actor": GONE_ACTOR},
        "an actor of 80 days ago, ever": {"actor": GONE_ACTOR, **ever},
        "an actor that never was": {"actor": "nobody"},
        "an end user": {"on_behalf_of": some["on_behalf_of"]},
        "a usual action": {"action": "middleware.invoke"},
        "a rare action": {"action": RARE_ACTION},
        "a usual middleware": {"middleware": "pii_redaction"},
        "a rare middleware": {"middleware": RARE_MIDDLEWARE},
        "the usual outcome": {"outcome": "ok"},
        "refusals": {"outcome": "refused"},
        "a rare outcome": {"outcome": "failed"},
        "a scope": {"scope_ref": some["scope_ref"]},
        "a scope that never was": {"scope": "no such scope"},
        "a request id": {"request_id": some["request_id"]},
        "a client's request id": {"client_request_id": some["client_request_id"]},
        "an hour, 20 days ago": hour,
        "a day, 20 days ago": day,
        "a week, 20 days ago": week,
        "30 days, 45 days ago": month,
        "a usual actor's hour": {**usual, **hour},
        "a usual actor's day": {**usual, **day},
        "a usual actor's week": {**usual, **week},
        "a usual actor's 30 days": {**usual, **month},
        "a usual action's week": {"action": "tools/call", **week},
        "a usual middleware's week": {"middleware": "pii_redaction", **week},
        "refusals of a week": {"outcome": "refused", **week},
        "an end user's week": {"on_behalf_of": some["on_behalf_of"], **week},
        "a usual actor's refusals": {**usual, "outcome": "refused"},
        "a usual actor's rare outcome": {**usual, "outcome": "failed"},
        "a usual actor's refused calls of a week": {
            **usual,
            "outcome": "refused",
            "action": "tools/call",
            **week,
        },
        "an end user's refusals": {"on_behalf_of": some["on_behalf_of"], "outcome": "refused"},
        "a middleware's refusals for an actor": {
            **usual,
            "middleware": "pii_redaction",
            "outcome": "refused",
        },
        "a usual actor's calls in a scope": {**usual, "scope_ref": some["scope_ref"]},
        "an action and a middleware that never meet": {"action": "tools/call", "middleware": "pii_redaction"},
    }


def _ago(now: datetime, days: int, long: timedelta) -> Query:
    """Return a time of that length whose end is so many days ago."""
    until = now - timedelta(days=days)
    return {"since": (until - long).isoformat(), "until": until.isoformat()}


async def _example(rest: Rest, tenant: str) -> dict[str, str]:
    """Return members of events that are there: the newest that was filled in and has them."""
    found: dict[str, Any] = {}
    events = (await _page(rest, tenant, {"actor": "key-0", "limit": "100"})).json()["items"]
    for event in events:
        event |= {"client_request_id": event["details"].get("client_request_id")}
        found = {**{name: value for name, value in event.items() if value is not None}, **found}
    return {name: str(found.get(name, "none-of-them-has-one")) for name in _EXAMPLES}


_EXAMPLES = ("on_behalf_of", "scope_ref", "request_id", "client_request_id")


async def _page(rest: Rest, tenant: str, query: Query) -> Any:
    return await rest.call("GET", EVENTS, params=query, roles=[Role.AUDITOR], tenant=tenant)


async def _timed(
    rest: Rest, tenant: str, query: Query, times: int, server: psutil.Process | None
) -> Answered:
    took: list[float] = []
    begin_cpu = 0.0
    for number in range(-WARMING, times):
        if number == 0:
            begin_cpu = time.process_time() + spent(server)
        await asyncio.sleep(PAUSE_S)
        begin = time.perf_counter()
        answer = await _page(rest, tenant, query)
        lasted = (time.perf_counter() - begin) * 1e3
        if answer.status_code != HTTPStatus.OK:
            refused = answer.json()
            return Answered([lasted], 0.0, refused["details"].get("reason", refused["code"]))
        if number >= 0:
            took.append(lasted)
    cpu_s = time.process_time() + spent(server) - begin_cpu
    return Answered(took, cpu_s / times * 1e3)
