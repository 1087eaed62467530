"""Tenants in two databases with a directory in a third: whose request goes where, and what stays unique."""

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
from pydantic import SecretStr
from sqlalchemy import make_url

from app.cli.root import run
from app.core.access import ApiKey
from app.core.errors import ConflictError
from app.main import create_app
from app.settings import AuthSettings, ConfigurationError, DirectorySettings, KeysSettings, Settings
from tests.conftest import Copies, connect
from tests.protocol.mcp_service import listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import REVISIONS, client

TENANTS = {"acme": "east", "apex": "east", "beta": "west"}
INVOKE = "/api/v1/middleware/{}/invoke"


@dataclass
class Shards:
    """Two running services, and the databases of both and of their directory."""

    urls: dict[str, str]
    databases: dict[str, str]
    directory: str
    firsts: dict[str, str]

    async def rest(self, shard: str, key: str, method: str, path: str, body: Any = None) -> httpx2.Response:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(base_url=self.urls[shard], headers=headers, timeout=60) as http:
            return await http.request(method, path, json=body)

    async def tenant(self, shard: str, name: str) -> httpx2.Response:
        return await self.rest(shard, self.firsts[shard], "POST", "/api/v1/tenants", {"name": name})

    async def key(self, shard: str, tenant: str) -> httpx2.Response:
        body = {"tenant": tenant, "roles": ["invoker", "restorer"]}
        return await self.rest(shard, self.firsts[shard], "POST", "/api/v1/keys", body)

    async def places(self) -> dict[str, str]:
        """Return the shard of each key, as a router reads it in the directory."""
        listed = await rows(self.directory, "SELECT id, shard FROM directory_key")
        return dict(listed)

    async def of(self, key: str) -> str:
        return (await self.places())[ApiKey.parse(key).id]


async def rows(url: str, statement: str) -> list[Any]:
    connection = await connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


@pytest.fixture
def databases(migrated_postgres: Copies) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(migrated_postgres()) for name in ("east", "west", "directory")}


def settings_for(databases: dict[str, str], shard: str, folder: Path, first: str) -> Settings:
    return settings_of(databases[shard]).model_copy(
        update={
            "directory": DirectorySettings(url=SecretStr(databases["directory"]), shard=shard),
            "keys": KeysSettings(file=folder / shard / "keyring.json"),
            "auth": AuthSettings(bootstrap_key=SecretStr(first)),
        }
    )


@asynccontextmanager
async def serving(databases: dict[str, str], shard: str, folder: Path, first: str) -> AsyncIterator[str]:
    """Serve one shard and yield its address."""
    (folder / shard).mkdir(exist_ok=True)
    async with listening(create_app(settings_for(databases, shard, folder, first))) as url:
        yield url.removesuffix("/mcp")


@pytest.fixture
async def shards(databases: dict[str, str], tmp_path: Path) -> AsyncIterator[Shards]:
    firsts = {shard: str(ApiKey.generate()) for shard in ("east", "west")}
    with unchanged_logging():
        async with AsyncExitStack() as stack:
            urls = {
                shard: await stack.enter_async_context(serving(databases, shard, tmp_path, first))
                for shard, first in firsts.items()
            }
            yield Shards(urls, databases, databases["directory"], firsts)


async def test_each_tenant_is_served_from_its_own_database_at_every_door(shards: Shards) -> None:
    keys = {}
    for tenant, shard in TENANTS.items():
        assert (await shards.tenant(shard, tenant)).status_code == 201
        keys[tenant] = (await shards.key(shard, tenant)).json()["key"]
    for tenant, key in keys.items():
        shard, body = await shards.of(key), {"context": ["jane@example.com"], "arguments": {"scope": "talk"}}
        assert shard == TENANTS[tenant]
        answer = await shards.rest(shard, key, "POST", INVOKE.format("pii_redaction"), body)
        assert answer.json()["content"] == ["[EMAIL_1]"]
        for revision in REVISIONS:
            async with client(f"{shards.urls[shard]}/mcp", revision, key) as wire:
                reply = await wire.invoke(
                    "jane@example.com", name="pii_redaction", arguments={"scope": "mcp"}
                )
            assert "[EMAIL_1]" in json.dumps(reply.result)
        # The control: the shard that the directory does not name knows nothing of the key.
        other = "west" if shard == "east" else "east"
        assert (
            await shards.rest(other, key, "POST", INVOKE.format("pii_redaction"), body)
        ).status_code == 401
    for shard in ("east", "west"):
        for table in ("scope", "entry", "api_key"):
            stored = await rows(shards.databases[shard], f"SELECT DISTINCT tenant FROM {table}")  # noqa: S608
            served = {tenant for tenant, holder in TENANTS.items() if holder == shard}
            assert {tenant for (tenant,) in stored} - {"default"} == served, table
    assert await rows(shards.directory, "SELECT count(*) FROM scope") == [(0,)]


async def test_no_two_shards_give_out_one_id_or_have_one_name(
    shards: Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await shards.tenant("east", "acme")).status_code == 201
    refused = await shards.tenant("west", "acme")
    assert (refused.status_code, refused.json()["detail"]) == (409, "A tenant of that name exists.")
    assert await rows(shards.databases["west"], "SELECT id FROM tenant WHERE id = 'acme'") == []
    assert (await shards.tenant("west", "beta")).status_code == 201

    ids = itertools.chain(["0a0a0a0a", "0a0a0a0a", "0b0b0b0b"], itertools.repeat("0a0a0a0a"))
    draw = secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda size: next(ids) if size == 4 else draw(size))
    made = [await shards.key("east", "acme"), await shards.key("west", "beta")]
    assert [answer.json()["id"] for answer in made] == ["0a0a0a0a", "0b0b0b0b"]
    assert (await shards.key("west", "beta")).status_code == 409  # every draw is taken
    places = await shards.places()
    assert (places["0a0a0a0a"], places["0b0b0b0b"]) == ("east", "west")
    # Nor may a shard take what another has, with the rights that its service has there.
    service = await connect(shards.directory)
    try:
        await service.execute("SET ROLE sluice_system")
        for table in ("directory_key", "directory_tenant"):
            assert await service.fetchval(f"SELECT count(*) FROM {table}")  # noqa: S608
            for change in (f"UPDATE {table} SET shard = 'west'", f"DELETE FROM {table}"):  # noqa: S608
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await service.execute(change)
    finally:
        await service.close()


async def test_while_the_directory_is_away_calls_go_on_and_no_key_is_made(
    shards: Shards, postgres_url: str, tmp_path: Path
) -> None:
    assert (await shards.tenant("east", "acme")).status_code == 201
    key = (await shards.key("east", "acme")).json()["key"]
    name = shards.directory.rsplit("/", 1)[1].partition("?")[0]
    await rows(postgres_url, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608
    await rows(postgres_url, ended)
    try:
        for answer in (await shards.key("east", "acme"), await shards.tenant("east", "apex")):
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
            assert "directory" in answer.json()["detail"]
        body = {"context": ["Hello"]}
        answer = await shards.rest("east", key, "POST", INVOKE.format("timestamp_injector"), body)
        assert answer.status_code == 200
        async with serving(shards.databases, "east", tmp_path, shards.firsts["east"]) as again:
            shards.urls["east again"] = again
            answer = await shards.rest("east again", key, "POST", INVOKE.format("timestamp_injector"), body)
            assert answer.status_code == 200
    finally:
        await rows(postgres_url, f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    assert await rows(shards.databases["east"], "SELECT id FROM tenant WHERE id = 'apex'") == []
    assert (await shards.key("east", "acme")).status_code == 201


async def test_a_first_key_of_another_shard_ends_the_start(databases: dict[str, str], tmp_path: Path) -> None:
    first = str(ApiKey.generate())
    with unchanged_logging():
        async with serving(databases, "east", tmp_path, first):
            pass
        app = create_app(settings_for(databases, "west", tmp_path, first))
        with pytest.raises(ConflictError, match="The shard east has a key with the id"):
            async with app.router.lifespan_context(app):
                pass


def test_a_directory_needs_a_database_of_its_own_with_its_tables_and_roles(
    databases: dict[str, str], postgres_url: str, tmp_path: Path
) -> None:
    first, login = str(ApiKey.generate()), f"stranger_{secrets.token_hex(4)}"
    asyncio.run(rows(postgres_url, f"CREATE ROLE {login} LOGIN"))
    stranger = make_url(databases["directory"]).set(username=login).render_as_string(hide_password=False)
    wrong = {
        databases["east"]: "one of its own",
        postgres_url: "sluice db upgrade",
        stranger: "SLUICE_DIRECTORY__URL: .* grant them",
    }
    try:
        for url, sentence in wrong.items():
            settings = settings_for({**databases, "directory": url}, "east", tmp_path, first)
            with pytest.raises(ConfigurationError, match=sentence), unchanged_logging():
                start(settings)
    finally:
        asyncio.run(rows(postgres_url, f"DROP ROLE {login}"))
    for half in ({"url": SecretStr(databases["directory"])}, {"shard": "east"}):
        with pytest.raises(ConfigurationError, match="belong together"):
            Settings(directory=DirectorySettings(**half)).check()


def start(settings: Settings) -> None:
    async def begin() -> None:
        app = create_app(settings)
        async with app.router.lifespan_context(app):
            pass

    asyncio.run(begin())


def test_a_shard_from_before_the_directory_is_adopted_and_what_is_doubled_is_named(
    databases: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SLUICE_KEYS__FILE", str(tmp_path / "keyring.json"))
    made = {}
    for shard, tenants in (("east", ["acme", "apex"]), ("west", ["beta"])):
        monkeypatch.setenv("SLUICE_DATABASE__URL", databases[shard])
        for tenant in tenants:
            assert run(["tenants", "create", tenant]) == 0
            capsys.readouterr()
            assert run(["keys", "create", "--tenant", tenant, "--role", "invoker"]) == 0
            made[ApiKey.parse(capsys.readouterr().out.strip()).id] = shard
        monkeypatch.setenv("SLUICE_DIRECTORY__URL", databases["directory"])
        monkeypatch.setenv("SLUICE_DIRECTORY__SHARD", shard)
        for _ in range(2):  # it may be repeated
            assert run(["directory", "adopt"]) == 0
        monkeypatch.delenv("SLUICE_DIRECTORY__URL")
        monkeypatch.delenv("SLUICE_DIRECTORY__SHARD")
    capsys.readouterr()
    monkeypatch.setenv("SLUICE_DIRECTORY__URL", databases["directory"])
    monkeypatch.setenv("SLUICE_DIRECTORY__SHARD", "south")
    assert run(["directory", "map"]) == 0
    assert capsys.readouterr().out == "".join(f"{key} {shard}\n" for key, shard in sorted(made.items()))
    # A third that was copied from the second, say: what it has is the second's.
    assert run(["directory", "adopt"]) == 1
    said = capsys.readouterr().err
    west = next(key for key, shard in made.items() if shard == "west")
    assert "Another shard has tenant beta: west" in said
    assert f"Another shard has key {west} of beta: west" in said
    assert run(["directory", "map"]) == 0
    assert "south" not in capsys.readouterr().out
