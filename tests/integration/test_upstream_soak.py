"""The whole service for minutes: a server that misbehaves beside four good ones, and changes on two replicas."""

import asyncio
import contextlib
import gc
import json
import os
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx2
import pytest

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.contracts.policy import Policy
from app.services.access.access import HOST
from app.services.servers.sealing import SubmittedServer
from app.store.migrate import upgrade
from tests.conftest import fresh_postgres
from tests.e2e.running import running
from tests.factories import caller_of
from tests.integration.upstream_setup import CUT_STREAMS, free_port
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, REVISIONS, Wire, client
from tests.protocol.test_mcp_streams import getting, listening
from tests.upstreams.misbehaving import TOOLS, misbehaving
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings(CUT_STREAMS)]

OTHERS = ("a", "b", "c", "d")
CALLS, PESTERING = 100, 3
GROWTH_MIB = 100
UNLIMITED = {"requests_per_second": 100_000, "burst": 100_000}
SOAK_S = 120
HEARD_S = 10


@dataclass
class Host:
    """A client of the revision without sessions."""

    url: str
    key: str
    wire: Wire = field(init=False)

    async def call(self, name: str, arguments: dict | None = None) -> dict:
        reply = await self.wire.call(
            "tools/call", {}, {"mcp-name": name}, name=name, arguments=arguments or {}
        )
        return reply.message

    async def names(self) -> dict[str, str]:
        """Return the descriptions of the listed tools by name."""
        tools = (await self.wire.call("tools/list")).result["tools"]
        return {tool["name"]: tool.get("description", "") for tool in tools}

    async def rest(self, method: str, path: str, body: object = None) -> dict:
        reply = await self.wire.http.request(method, f"{self.url}/api/v1{path}", json=body)
        assert reply.is_success, reply.text
        return reply.json() if reply.text else {}


@contextlib.asynccontextmanager
async def hosting(url: str, key: str):
    host = Host(url, key)
    async with client(f"{url}/mcp", MODERN, key) as host.wire:
        host.wire.http.timeout = httpx2.Timeout(60)
        yield host


async def burst(host: Host) -> list[float]:
    """Call the four good servers; every answer must be right. Return how long each call took."""
    latencies = []

    async def work(server: str) -> None:
        for number in range(CALLS):
            began = time.perf_counter()
            answer = await host.call(f"{server}__add", {"a": number, "b": 1000})
            latencies.append(time.perf_counter() - began)
            assert "result" in answer, answer
            assert answer["result"]["content"][0]["text"] == str(number + 1000)

    async with asyncio.TaskGroup() as group:
        for server in OTHERS:
            group.create_task(work(server))
    return latencies


async def during(host: Host, fault: str) -> tuple[list[float], Counter]:
    """Run a burst while the fifth server is asked for ``fault`` again and again."""
    outcomes, stop = Counter(), asyncio.Event()

    async def pester() -> None:
        while not stop.is_set():
            answer = await host.call(f"faulty__{fault}")
            outcomes[answer["error"]["code"] if "error" in answer else "answered"] += 1
            await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(pester()) for _ in range(PESTERING)]
    try:
        return await burst(host), outcomes
    finally:
        stop.set()
        await asyncio.gather(*tasks)


def p99(latencies: list[float]) -> float:
    return 1000 * sorted(latencies)[int(0.99 * len(latencies))]


def memory_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def eventually(condition, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.1)


def declared(tmp_path: Path, urls: dict[str, str]) -> Path:
    file = tmp_path / "mcp.json"
    servers = {name: {"url": url, "timeoutS": 3} for name, url in urls.items()}
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


async def test_one_server_of_five_misbehaves_in_every_way_and_the_service_serves_the_others(tmp_path):
    port = free_port()
    with ExitStack() as stack:
        urls = {name: stack.enter_context(serving_http(ScriptedServer(name))) for name in OTHERS}
        faulty = stack.enter_context(ExitStack())
        server = faulty.enter_context(misbehaving(port=port))
        file = declared(tmp_path, {**urls, "faulty": server.url})
        service = stack.enter_context(running(tmp_path, "--config", str(file), forked=False))
        async with hosting(service.url, service.key) as host:
            await host.rest("PUT", "/policies?expected_version=0", {"limits": UNLIMITED})
            await eventually(lambda: listed(host, {"faulty__verbatim", *(f"{name}__add" for name in OTHERS)}))
            await burst(host)
            without, outcomes = await during(host, "verbatim")
            assert set(outcomes) == {"answered"}
            before = memory_mib(service.process.pid)
            print(f"p99 of the others {p99(without):.1f} ms without a fault; {before:.0f} MiB")
            for fault in sorted(TOOLS.keys() - {"verbatim"}):
                within, outcomes = await during(host, fault)
                grown = memory_mib(service.process.pid) - before
                print(f"{fault}: p99 {p99(within):.1f} ms, {dict(outcomes)}, {grown:+.0f} MiB")
                assert p99(within) <= max(3 * p99(without), 500)
                assert grown < GROWTH_MIB

            await asyncio.to_thread(faulty.close)
            await burst(host)
            other = [{"name": "verbatim", "description": "Changed.", "inputSchema": {"type": "object"}}]

            async def changed(exchange) -> None:
                await exchange.answer({"tools": other})

            stack.enter_context(misbehaving(port=port, on={"tools/list": changed}))
            await eventually(lambda: gone(host, "faulty__verbatim"))
            await burst(host)
            refused = await host.call("faulty__verbatim")
            assert refused["error"]["code"] == -32602
            await host.rest("POST", "/servers/faulty/approve")
            await eventually(lambda: listed(host, {"faulty__verbatim"}))
            assert (await host.names())["faulty__verbatim"] == "Changed."
            assert "result" in await host.call("faulty__verbatim")


async def listed(host: Host, names: set[str]) -> bool:
    return names <= (await host.names()).keys()


async def gone(host: Host, name: str) -> bool:
    names = await host.names()
    assert names.get(name) != "Changed.", "what changed is served before it is approved"
    return name not in names


@dataclass
class Ear:
    """A stream that a client keeps open, and what it has heard since ``forget``."""

    place: str
    heard: set[str] = field(default_factory=set)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, url: str, revision: str) -> None:
        kinds = {"toolsListChanged": True, "promptsListChanged": True, "groupsListChanged": True}
        async with client(url, revision, str(KEY)) as wire:
            wire.http.timeout = httpx2.Timeout(None)
            opening = getting(wire) if revision == HANDSHAKE else listening(wire, **kinds)
            async with opening as stream:
                assert stream.status == 200
                self.open.set()
                async for line in stream._lines:
                    if line.startswith("data:") and len(line) > 6:
                        self.heard.add(json.loads(line[5:]).get("method", ""))


@dataclass
class Soak:
    """Two replicas, their clients, and what may be listed."""

    urls: list[str]
    foreign: str
    until: float
    chance: random.Random = field(default_factory=lambda: random.Random(20261121))
    done: Counter = field(default_factory=Counter)
    down: bool = False

    @property
    def over(self) -> bool:
        return time.monotonic() > self.until

    async def call(self) -> None:
        """Call and list, on any replica and revision; sessions are opened anew now and then."""
        while not self.over:
            url, revision = self.chance.choice(self.urls), self.chance.choice(REVISIONS)
            mine = self.chance.random() < 0.7
            key = str(KEY) if mine else self.foreign
            async with client(url, revision, key) as wire:
                for _ in range(10):
                    await self.one(wire, ("alpha", "beta") if mine else ("gamma",))

    async def one(self, wire: Wire, servers: tuple[str, ...]) -> None:
        server, number = self.chance.choice(servers), self.chance.randrange(10**6)
        if self.chance.random() < 0.3:
            tools = (await wire.call("tools/list")).result["tools"]
            assert {tool["name"].partition("__")[0] for tool in tools} <= set(servers)
            assert f"{servers[-1]}__add" in {tool["name"] for tool in tools}
            self.done["lists"] += 1
            return
        name = f"{server}__add"
        headers = {"mcp-name": name} if wire.modern else {}
        may_fail = server == "alpha" and self.down
        reply = await wire.call("tools/call", {}, headers, name=name, arguments={"a": number, "b": 1})
        if "error" in reply.message:
            assert server == "alpha", reply.message
            assert may_fail or self.down, reply.message
            assert reply.error["code"] in {5020, 5040}, reply.message
            self.done["failed while down"] += 1
        else:
            assert reply.result["content"][0]["text"] == str(number + 1)
            self.done["calls"] += 1


GROUP = {"name": "sums", "members": [{"kind": "tool", "name": "beta__*"}]}
CONCERN = {"name": "effect", "description": "What it does.", "values": ["read", "write"], "default": "read"}
MAPPING = {"kind": "tool", "name": "beta__echo", "concerns": {"effect": "write"}}
TOOLS_TOLD = "notifications/tools/list_changed"
CHANGES = [
    ("PUT", "/groups/sums", GROUP, {"notifications/groups/list_changed", TOOLS_TOLD}),
    ("PATCH", "/groups/sums/members", {"add": [{"kind": "tool", "name": "alpha__add"}]}, {TOOLS_TOLD}),
    ("PUT", "/concern-mappings", MAPPING, {TOOLS_TOLD}),
    ("DELETE", "/concern-mappings/tool/beta__echo", None, {TOOLS_TOLD}),
    ("DELETE", "/groups/sums", None, {"notifications/groups/list_changed", TOOLS_TOLD}),
]


async def change(soak: Soak, ears: list[Ear]) -> None:
    """Change something on one replica; every stream of every replica hears it in time."""
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        await http.put(f"{soak.urls[0].removesuffix('/mcp')}/api/v1/concerns/effect", json=CONCERN)
        while not soak.over:
            for method, path, body, told in CHANGES:
                await asyncio.sleep(0.5)
                for ear in ears:
                    ear.heard.clear()
                base = soak.chance.choice(soak.urls).removesuffix("/mcp")
                reply = await http.request(method, f"{base}/api/v1{path}", json=body)
                assert reply.is_success, reply.text
                began = time.monotonic()
                while missing := [ear.place for ear in ears if not told <= ear.heard]:
                    assert time.monotonic() < began + HEARD_S, (method, path, missing)
                    await asyncio.sleep(0.01)
                soak.done["changes heard"] += 1


async def restart(soak: Soak, script: ScriptedServer, port: int, serving: ExitStack) -> None:
    """Stop the server alpha and start it again."""
    while not soak.over:
        await asyncio.sleep(15)
        soak.down = True
        await asyncio.to_thread(serving.close)
        await asyncio.sleep(1)
        await asyncio.to_thread(serving.enter_context, serving_http(script, port=port))
        for url in soak.urls:
            async with client(url, MODERN, str(KEY)) as wire, asyncio.timeout(60):
                while "error" in (await add(wire)).message:
                    await asyncio.sleep(0.1)
        soak.down = False
        soak.done["restarts"] += 1


async def add(wire: Wire):
    name = "alpha__add"
    return await wire.call("tools/call", {}, {"mcp-name": name}, name=name, arguments={"a": 1, "b": 1})


def children() -> int:
    pid = os.getpid()
    return sum(len((task / "children").read_text().split()) for task in Path(f"/proc/{pid}/task").iterdir())


async def standing() -> tuple[Counter, int, int]:
    """Return what is there when nothing is asked: tasks by name of their function, descriptors, children."""
    await asyncio.sleep(3)
    gc.collect()
    tasks = Counter(getattr(task.get_coro(), "__qualname__", "?") for task in asyncio.all_tasks())
    return tasks, len(list(Path("/proc/self/fd").iterdir())), children()


async def globex(app, url: str) -> str:
    """Make another tenant with a server of its own, and return a key of it."""
    services, operator = app.state.services, caller_of("globex")
    await services.tenants.create(HOST, "globex")
    await services.servers.add(operator, "gamma", SubmittedServer({"url": url}))
    await services.servers.approve(operator, "gamma")
    made = await services.access.create_key(HOST, [Role.INVOKER], tenant="globex")
    return str(made.key)


@pytest.fixture
def own_postgres(postgres_url):
    with fresh_postgres(postgres_url) as url:
        upgrade(url)
        yield url


async def test_two_replicas_answer_rightly_and_tell_every_change_and_leave_nothing_over(
    own_postgres, tmp_path
):
    port = free_port()
    with ExitStack() as stack:
        scripts = {name: ScriptedServer(name) for name in ("alpha", "beta", "gamma")}
        serving = stack.enter_context(ExitStack())
        servers = {"alpha": {"url": serving.enter_context(serving_http(scripts["alpha"], port=port))}}
        servers["beta"] = {"url": stack.enter_context(serving_http(scripts["beta"]))}
        gamma = stack.enter_context(serving_http(scripts["gamma"]))
        options = {"database_url": own_postgres, "allowed_networks": ["127.0.0.0/8"]}
        async with (
            aggregated(tmp_path, servers, **options) as (one, app),
            aggregated(tmp_path, servers, **options) as (two, second),
        ):
            soak = Soak([one, two], await globex(app, gamma), 0)
            owner = Caller("globex", "0000000f", frozenset(Role))
            for tenant in (DEFAULT_TENANT, "globex"):
                await app.state.services.policies.put(
                    HOST, tenant, Policy.model_validate({"limits": UNLIMITED})
                )
            for each in (app, second):
                await eventually(partial(offered, each, owner))
            await warmed(soak)
            before = await standing()
            soak.until = time.monotonic() + SOAK_S
            ears = [Ear(f"{revision} at {place}") for revision in REVISIONS for place in ("one", "two")]
            places = [(url, revision) for revision in REVISIONS for url in soak.urls]
            hearing = [asyncio.create_task(ear.listen(*at)) for ear, at in zip(ears, places, strict=True)]
            await asyncio.gather(*(ear.open.wait() for ear in ears))
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(change(soak, ears))
                    group.create_task(restart(soak, scripts["alpha"], port, serving))
                    for _ in range(4):
                        group.create_task(soak.call())
            finally:
                print(dict(soak.done))
                assert not any(task.done() for task in hearing), "a stream ended"
                for task in hearing:
                    task.cancel()
                await asyncio.gather(*hearing, return_exceptions=True)
            after = await standing()
            print(f"tasks {before[0].total()} -> {after[0].total()}, more: {after[0] - before[0]}")
            print(f"descriptors {before[1]} -> {after[1]}, children {before[2]} -> {after[2]}")
            assert min(soak.done[what] for what in ("lists", "calls", "changes heard", "restarts")) > 0
            assert after[0].total() <= before[0].total() + 2
            assert after[1] <= before[1] + 10
            assert after[2] <= before[2]


async def warmed(soak: Soak) -> None:
    """Let pools and connections reach their size."""
    soak.until = time.monotonic() + 5
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(soak.call())
    soak.done.clear()


async def offered(app, caller: Caller) -> bool:
    catalog = await app.state.services.catalogs.get(caller.tenant)
    return any(catalog.primitives.values())
