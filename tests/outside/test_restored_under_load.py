"""A backup that was made under load is put back under load: nobody who was erased since comes back, on both engines."""

import asyncio
import random
import shutil
import sqlite3
import string
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from sqlalchemy import make_url

from tests.e2e.test_restored_database import COMMAND, SECRETS, Installation
from tests.integration.service import Service, running_service
from tests.outside.standby import PROGRAMS
from tests.protocol.mcp_wire import REVISIONS, client
from tests.upstreams.providing import free_port

pytestmark = [pytest.mark.outside, pytest.mark.timeout(300)]

LIVING, GONE = ("acme", "borealis"), "cassini"
REST = "REST"
DOORS = (REST, *REVISIONS)
SCOPE = "load"
WITHIN_S = 60
REASON = "Request 2026-114"
TOOLS = PROGRAMS.parents[1] / "pginstall18" / "bin"
"""Those of the tests' shared server; the ones beside it are older and refuse it."""


@dataclass
class Backed(Installation):
    """An installation whose backup is made while it serves, with the tools of the database."""

    def back_up(self) -> None:
        if self.url.startswith("sqlite"):
            super().back_up()
        else:
            self._run("pg_dump", "--format=custom", f"--file={self.folder}/backup.dump", self.url)

    def restore(self) -> None:
        """Put the backup back: over the SQLite file, or as another database of the server."""
        if self.url.startswith("sqlite"):
            self.lose()
            shutil.copyfile(self.folder / "backup.db", self.folder / "sluice.db")
            return
        name = make_url(self.url).database
        self.url = make_url(self.url).set(database=f"{name}_again").render_as_string(hide_password=False)
        asyncio.run(self.create())
        self._run("pg_restore", "--exit-on-error", f"--dbname={self.url}", f"{self.folder}/backup.dump")

    async def create(self) -> None:
        connection = await asyncpg.connect(
            make_url(self.url).set(database="postgres").render_as_string(False)
        )
        try:
            await connection.execute(f'CREATE DATABASE "{make_url(self.url).database}"')
        finally:
            await connection.close()

    def keys_of(self, tenant: str) -> int:
        """Return how many keys of its own a tenant has in the database."""
        query = f"SELECT count(*) FROM tenant_key WHERE tenant = '{tenant}'"  # noqa: S608 - the test's own
        if self.url.startswith("sqlite"):
            connection = sqlite3.connect(self.folder / "sluice.db")
            try:
                return int(connection.execute(query).fetchone()[0])
            finally:
                connection.close()
        return int(self._run("psql", "-XAtc", query, self.url))

    @staticmethod
    def _run(program: str, *arguments: str) -> str:
        command = [str(TOOLS / program), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout


@dataclass
class Load:
    """Clients of several tenants that hide a new secret with each call, through each door, whatever happens."""

    url: str
    keys: dict[str, str]
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    given: dict[tuple[str, str], str] = field(default_factory=dict)
    """What each handle of a tenant stands for."""
    twice: list[tuple[str, str]] = field(default_factory=list)
    """Handles that were given for two secrets."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self._work(*each)) for each in product(self.keys, DOORS)]
            yield
            for worker in workers:
                worker.cancel()

    async def more(self, *tenants: str) -> None:
        """Wait until each client of ``tenants`` (none named: of those that stay) was answered four times more."""
        until = {place: self.answered[place] + 4 for place in product(tenants or LIVING, DOORS)}
        async with asyncio.timeout(WITHIN_S):
            while any(self.answered[place] < wanted for place, wanted in until.items()):
                await asyncio.sleep(0.02)

    def answers_of(self, tenant: str) -> int:
        return sum(self.answered[tenant, door] for door in DOORS)

    async def _work(self, tenant: str, door: str) -> None:
        drawn = random.Random(f"{tenant} {door}")
        while True:
            secret = "".join(drawn.choices(string.ascii_letters + string.digits, k=14)) + "!7"
            shown = None
            with suppress(httpx2.TransportError):
                shown = await self._shown(tenant, door, secret)
            if shown is None:
                await asyncio.sleep(0.02)
                continue
            assert shown.startswith("["), shown
            self.answered[tenant, door] += 1
            if self.given.setdefault((tenant, shown), secret) != secret:
                self.twice.append((tenant, shown))

    async def _shown(self, tenant: str, door: str, secret: str) -> str | None:
        """Return what stands for the secret in the answer, None where there is none."""
        context, arguments = [{"type": "text", "text": f"DB_PASSWORD={secret}"}], {"scope": SCOPE}
        key, content = self.keys[tenant], []
        if door == REST:
            headers = {"authorization": f"Bearer {key}"}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                path = f"{self.url}/api/v1/middleware/secret_redaction/invoke"
                answer = await http.post(path, json={"context": context, "arguments": arguments})
            content = answer.json()["content"] if answer.status_code == 200 else []
        else:
            async with client(f"{self.url}/mcp", door, key) as wire:
                called: dict[str, Any] = {"name": "secret_redaction", "context": context}
                reply = await wire.call("middleware/invoke", arguments=arguments, **called)
            if reply.messages and "result" in reply.message:
                content = reply.result["content"]
        return content[0]["text"].partition("=")[2] if content else None


@pytest.fixture(params=["sqlite", "postgresql"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backed]:
    if request.param == "sqlite":
        yield Backed(tmp_path, f"sqlite:///{tmp_path}/sluice.db")
        return
    server = request.getfixturevalue("postgres_url")

    async def drop(name: str) -> None:
        connection = await asyncpg.connect(server)
        try:
            await connection.execute(f'DROP DATABASE IF EXISTS "{name}_again" WITH (FORCE)')
        finally:
            await connection.close()

    with request.getfixturevalue("migrated_postgres")() as url:
        yield Backed(tmp_path, url)
        asyncio.run(drop(str(make_url(url).database)))


@asynccontextmanager
async def served(installation: Backed, port: int) -> AsyncIterator[Service]:
    """Serve on ``port``, and leave this loop to the load while the service starts and stops."""
    opened = running_service(installation.folder, database_url=installation.url, port=port)
    service = await asyncio.to_thread(opened.__enter__)
    try:
        yield service
    finally:
        await asyncio.to_thread(opened.__exit__, None, None, None)


def asked(service: Service, method: str, path: str, body: Any = None) -> Any:
    answer = service.http.request(method, f"/api/v1{path}", json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


def hide(service: Service, scope: str, *names: str) -> None:
    context = [{"type": "text", "text": f"DB_PASSWORD={SECRETS[name]}"} for name in names]
    body = {"context": context, "arguments": {"scope": scope}}
    asked(service, "POST", "/middleware/secret_redaction/invoke", body)


def originals(service: Service) -> dict[str, set[str]]:
    """Return what can be read in each scope of the first tenant."""
    read = {}
    for scope in asked(service, "GET", "/vault/scopes")["items"]:
        path = f"/vault/scopes/{scope['id']}/entries?originals=true"
        answer = service.http.get(f"/api/v1{path}")
        items = answer.json()["items"] if answer.status_code == 200 else []
        read[scope["id"]] = {entry["original"] for entry in items}
    return {name: held for name, held in read.items() if held}


def settle(service: Service) -> dict[str, str]:
    """Make the tenants and what is to be erased; return a key of each tenant."""
    hide(service, "talk", "asked", "stays")
    hide(service, "whole", "asked", "later")
    keys = {}
    for tenant in (*LIVING, GONE):
        asked(service, "POST", "/tenants", {"name": tenant})
        keys[tenant] = asked(service, "POST", "/keys", {"roles": ["invoker"], "tenant": tenant})["key"]
    return keys


def erase(service: Service) -> list[str]:
    """Erase a value, a scope and a tenant by orders, wait until the first two are done, and return their ids."""
    asked(service, "PATCH", f"/tenants/{GONE}", {"disabled": True})
    values = [{"value": SECRETS["asked"]}]
    jobs = [
        asked(service, "POST", "/erasures", {**what, "reason": REASON})["id"]
        for what in ({"values": values}, {"scopes": ["whole"]}, {"tenant": GONE})
    ]
    until = time.monotonic() + WITHIN_S
    while any(asked(service, "GET", f"/erasures/{job}")["state"] != "done" for job in jobs[:2]):
        assert time.monotonic() < until
        time.sleep(0.1)
    return jobs


async def test_nobody_comes_back_with_a_backup_that_was_made_and_put_back_under_load(
    installation: Backed,
) -> None:
    port = free_port()
    async with AsyncExitStack() as stack:
        async with served(installation, port) as service:
            load = Load(f"http://127.0.0.1:{port}", await asyncio.to_thread(settle, service))
            await stack.enter_async_context(load.running())
            await load.more(*LIVING, GONE)
            await asyncio.to_thread(installation.back_up)
            await load.more(*LIVING, GONE)
            jobs = await asyncio.to_thread(erase, service)
            await load.more()
            assert await asyncio.to_thread(originals, service) == {"talk": {SECRETS["stays"]}}
        await asyncio.to_thread(installation.restore)
        assert installation.keys_of(GONE) > 0, "the backup has them"
        gone, before = load.answers_of(GONE), len(load.given)
        async with served(installation, port) as service:
            await load.more()
            assert await asyncio.to_thread(originals, service) == {"talk": {SECRETS["stays"]}}
            assert (installation.keys_of(GONE), load.answers_of(GONE)) == (0, gone)
            assert asked(service, "GET", f"/tenants/{GONE}")["erased"] is not None
            states = [asked(service, "GET", f"/erasures/{job}")["state"] for job in jobs]
            assert states == ["done", "done", "running"], "a tenant's receipt follows after ten minutes"
            assert "erasures were repeated" in service.log.getvalue()
    assert len(load.given) > before
    assert load.twice == []


def test_without_the_file_of_erasures_a_start_is_refused_and_the_person_would_come_back(
    installation: Backed,
) -> None:
    """Negative control: it is that file which keeps the erased away; whoever goes on without it is told so."""
    port = free_port()
    with running_service(installation.folder, database_url=installation.url, port=port) as service:
        settle(service)
        installation.back_up()
        erase(service)
    installation.restore()
    (installation.folder / "erasures.jsonl").unlink()
    code, said = installation.command("serve")
    assert code == 1
    assert COMMAND in said
    assert "whoever was erased since would come back" in said
    code, said = installation.command("vault", "replay-erasures", "--incomplete")
    assert code == 0, said
    with running_service(installation.folder, database_url=installation.url, port=port) as service:
        assert originals(service) == {
            "talk": {SECRETS["asked"], SECRETS["stays"]},
            "whole": {SECRETS["asked"], SECRETS["later"]},
        }
    assert installation.keys_of(GONE) > 0
