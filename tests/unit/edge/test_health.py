"""Probes and metrics: what makes a process ready, and that probing is cheap."""

import asyncio

from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from app.edge.guard import EdgeGuard
from app.edge.health import Check, Readiness, health_router, in_turn
from app.edge.lifespan_state import Drain
from app.edge.observability import Metrics


async def get(path: str, readiness: Readiness, metrics: Metrics | None = None) -> Response:
    app = FastAPI()
    app.include_router(health_router(readiness, metrics))
    guard = EdgeGuard(app, drain=readiness.drain, metrics=metrics or Metrics())
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost") as http:
        return await http.get(path)


def readiness(**checks: Check) -> Readiness:
    return Readiness(Drain(), dict(checks), timeout_s=0.05)


async def passing() -> None:
    return None


async def failing() -> bool:
    return False


async def raising() -> None:
    raise OSError("Jane-Canary")


async def hanging() -> None:
    await asyncio.sleep(10)


async def test_a_living_process_says_so_whatever_else_is_broken() -> None:
    assert (await get("/livez", readiness(database=raising))).json() == {"status": "alive"}


async def test_a_process_is_ready_when_every_check_passes() -> None:
    answer = await get("/readyz", readiness(database=passing, keys=passing))
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ready",
        "checks": {"database": True, "keys": True, "started": True, "not_draining": True},
    }


async def test_a_check_fails_by_raising_hanging_or_saying_no() -> None:
    answer = await get("/readyz", readiness(a=raising, b=hanging, c=failing, d=passing))
    assert answer.status_code == 503
    passed = answer.json()["checks"]
    assert [passed[name] for name in "abcd"] == [False, False, False, True]
    assert "Jane-Canary" not in answer.text


async def test_a_process_that_has_not_started_is_not_ready() -> None:
    assert (await get("/readyz", readiness())).status_code == 503


async def test_a_draining_process_is_alive_but_not_ready() -> None:
    probe = readiness(database=passing)
    assert (await get("/readyz", probe)).status_code == 200
    probe.drain.begin()
    answer = await get("/readyz", probe)
    assert (answer.status_code, answer.json()["checks"]["not_draining"]) == (503, False)
    assert (await get("/livez", probe)).status_code == 200


async def test_many_probes_at_once_run_the_checks_once() -> None:
    runs = 0

    async def counting() -> None:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.01)

    probe = readiness(database=counting)
    await asyncio.gather(*(probe.state() for _ in range(50)))
    assert runs == 1


async def test_of_the_checks_that_take_turns_none_runs_beside_one_that_hangs() -> None:
    runs, alone = False, []

    async def first() -> object:
        nonlocal runs
        runs = True
        try:
            return await hanging()
        finally:
            runs = False

    async def second() -> bool:
        # Whether its own time is over before it gets its turn, depends on which of two timers is first.
        alone.append(not runs)
        return True

    answer = await get("/readyz", readiness(**in_turn({"first": first, "second": second}), third=passing))
    passed = answer.json()["checks"]
    assert (answer.status_code, passed["first"], passed["third"]) == (503, False, True)
    assert all(alone)


async def test_metrics_are_served_where_they_are_wanted() -> None:
    metrics = Metrics()
    answer = await get("/metrics", readiness(), metrics)
    assert answer.headers["content-type"].startswith("text/plain")
    assert "sluice_http_requests_running 1.0" in answer.text
    assert (await get("/metrics", readiness())).status_code == 404
