"""Tenants on two servers of PostgreSQL: each request reaches the one that has its key, and no other."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from app.core.access import ApiKey
from app.store.migrate import upgrade
from tests.conftest import Copies, connect, start_postgres
from tests.e2e.running import ROOT, Service, running
from tests.outside.calling import eventually, invoked
from tests.outside.debian import program
from tests.outside.proxies import awaited
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.needs("haproxy")]

CONFIGURATION = ROOT / "deploy" / "haproxy-shards.cfg"
TENANTS = {"shard-a": ("acme", "apex"), "shard-b": ("beta",)}
STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Shards:
    """Two installations, the address before them, and a key of each tenant."""

    url: str
    databases: dict[str, str]
    keys: dict[str, str]

    @contextmanager
    def client(self, key: str) -> Iterator[httpx2.Client]:
        headers = {"authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False) as http:
            yield http


def printed(service: Service, *arguments: str) -> Any:
    done = service.sluice(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in arguments else done.stdout.strip()


@contextmanager
def server_of_its_own() -> Iterator[str]:
    """Run another server of PostgreSQL and return the address of a migrated database there."""
    server = start_postgres(uuid4().hex)
    try:
        upgrade(server.get_uri())
        yield server.get_uri()
    finally:
        server.cleanup()


@pytest.fixture(scope="module")
def shards(migrated_postgres: Copies, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shards]:
    folder = tmp_path_factory.mktemp("shards")
    with ExitStack() as stack:
        directory = stack.enter_context(migrated_postgres())
        databases = {
            "shard-a": stack.enter_context(migrated_postgres()),
            "shard-b": stack.enter_context(server_of_its_own()),
        }
        services, keys = {}, {}
        for shard, tenants in TENANTS.items():
            own = folder / shard
            own.mkdir()
            settings = {
                "SLUICE_DATABASE__URL": databases[shard],
                "SLUICE_DIRECTORY__URL": directory,
                "SLUICE_DIRECTORY__SHARD": shard,
                "SLUICE_KEYS__FILE": str(own / "ring.json"),
                "SLUICE_AUTH__BOOTSTRAP_KEY": str(ApiKey.generate()),
            }
            services[shard] = stack.enter_context(running(own, **settings))
            for tenant in tenants:
                printed(services[shard], "tenants", "create", tenant)
                roles = ("--role", "invoker", "--role", "restorer")
                keys[tenant] = printed(services[shard], "keys", "create", "--tenant", tenant, *roles)
        (folder / "keys.map").write_text(printed(services["shard-a"], "directory", "map") + "\n")
        url = stack.enter_context(fronted(services, folder))
        yield Shards(url, databases, keys)


@contextmanager
def fronted(services: dict[str, Service], folder: Path) -> Iterator[str]:
    """Run HAProxy with the configuration of deploy/."""
    port, log = free_port(), folder / "haproxy.log"
    environment = {
        **os.environ,
        "LISTEN": f"127.0.0.1:{port}",
        "KEYS": str(folder / "keys.map"),
        **{
            shard.upper().replace("-", "_"): f"127.0.0.1:{service.port}"
            for shard, service in services.items()
        },
    }
    command = [program("haproxy") or "haproxy", "-db", "-f", str(CONFIGURATION)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        awaited(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def rows(url: str, statement: str) -> list[Any]:
    async def asked() -> Sequence[Any]:
        connection = await connect(url)
        try:
            return [row[0] for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    return list(asyncio.run(asked()))


def tenants_in(url: str, table: str) -> set[str]:
    """Return the tenants of a table's rows, those of every installation apart."""
    return set(rows(url, f"SELECT DISTINCT tenant FROM {table}")) - {"default", "system"}  # noqa: S608


def test_each_tenant_lives_in_its_own_database_alone(shards: Shards) -> None:
    for tenant, key in shards.keys.items():
        with shards.client(key) as http:
            (handle,) = invoked(http, "pii_redaction", [f"{tenant}@example.com"], scope="talk")
            assert handle == "[EMAIL_1]"
            # The same scope and the same handle: another tenant's would answer with its own value.
            assert invoked(http, "pii_restoration", [handle], scope="talk") == [f"{tenant}@example.com"]
    for shard, tenants in TENANTS.items():
        for table in ("scope", "entry", "audit_event", "api_key"):
            assert tenants_in(shards.databases[shard], table) == set(tenants), table
        # Each shard seals its own record, a few seconds later.
        eventually(lambda: tenants_in(shards.databases[shard], "log_leaf") == set(tenants))  # noqa: B023


def test_both_revisions_of_mcp_go_the_same_way(shards: Shards) -> None:
    for tenant, key in shards.keys.items():
        params = {
            "name": "pii_redaction",
            "arguments": {"scope": "mcp"},
            "context": [f"mcp@{tenant}.example"],
        }
        with shards.client(key) as http:
            begun = http.post("/mcp", headers=ACCEPT, json=message("initialize", INITIALIZE))
            session = ACCEPT | {"mcp-session-id": begun.headers["mcp-session-id"]}
            session["mcp-protocol-version"] = "2025-11-25"
            started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert http.post("/mcp", headers=session, json=started).status_code == 202
            whole = http.post("/mcp", headers=session, json=message("middleware/invoke", params))
            modern = ACCEPT | {"mcp-protocol-version": "2026-07-28", "mcp-method": "middleware/invoke"}
            modern["mcp-name"] = "pii_redaction"
            stateless = message("middleware/invoke", params | {"_meta": STATELESS})
            again = http.post("/mcp", headers=modern, json=stateless)
        for answer in (whole, again):
            assert "[EMAIL_1]" in answer.text, answer.text
    for shard, tenants in TENANTS.items():
        query = "SELECT DISTINCT tenant FROM entry WHERE scope = 'mcp'"
        assert set(rows(shards.databases[shard], query)) == set(tenants)


ACCEPT = {"accept": "application/json, text/event-stream"}
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    "credential", [pytest.param(f"Bearer {ApiKey.generate()}", id="unknown"), "Bearer", "Bearer slc_", "x"]
)
def test_a_key_that_the_directory_does_not_have_reaches_no_database(shards: Shards, credential: str) -> None:
    before = [rows(url, "SELECT count(*) FROM audit_event") for url in shards.databases.values()]
    call = "/api/v1/middleware/timestamp_injector/invoke"
    for headers in ({"authorization": credential}, {"x-api-key": credential.removeprefix("Bearer ")}):
        answer = httpx2.post(shards.url + call, headers=headers, json={"context": ["Hello"]}, trust_env=False)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert [rows(url, "SELECT count(*) FROM audit_event") for url in shards.databases.values()] == before


def test_the_right_shard_still_refuses_a_wrong_secret(shards: Shards) -> None:
    known = shards.keys["beta"]
    forged = known[:13] + str(ApiKey.generate())[13:]
    with shards.client(forged) as http:
        answer = http.post("/api/v1/middleware/timestamp_injector/invoke", json={"context": ["Hello"]})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
