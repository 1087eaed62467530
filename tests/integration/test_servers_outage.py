"""While the database is away, what is served stays, and what servers change meanwhile is held back all the same."""

import asyncio

from sqlalchemy import make_url

from app.core.access import Caller
from app.core.catalog.primitives import SERVERS_CHANGED
from app.core.errors import StoreUnavailableError
from app.core.events import Changed
from tests.conftest import connect
from tests.integration.serving_setup import Serving, serving_process, until
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer


async def shut(url: str, server: str, *, allow: bool) -> None:
    """Cut every connection to a database and let nobody in, or let them in again."""
    name = make_url(url).database
    connection = await connect(server)
    await connection.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS {allow}')
    if not allow:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name
        )
    await connection.close()


async def test_an_outage_of_the_database_leaves_what_is_served_and_hides_no_change(
    own_postgres_url: str, postgres_url: str, tenant: str
) -> None:
    script = ScriptedServer("alpha")
    serve = serving_http(script)
    url = await asyncio.to_thread(serve.__enter__)
    try:
        async with serving_process(own_postgres_url) as serving, serving_process(own_postgres_url) as other:
            operator = await serving.tenant(tenant)
            await serving.declare(operator, "alpha", url=url)
            await until(lambda: "alpha__echo" in serving.tools(operator))
            await until(lambda: "alpha__echo" in other.tools(operator))
            await shut(own_postgres_url, postgres_url, allow=False)
            await asyncio.sleep(1)  # for the process to notice and to try again in vain
            serving.upstreams.changed(Changed(SERVERS_CHANGED, tenant))
            serving.told.clear()
            script.tools["echo"] |= {"description": "Changed while nobody could look it up."}
            await asyncio.to_thread(script.announce, "tools")
            await until(lambda: serving.quarantined(operator).get("echo") == "changed")
            await until(lambda: serving.told)
            assert "alpha__add" in serving.tools(operator)
            assert serving.connection(operator, "alpha") == "ready"
            await shut(own_postgres_url, postgres_url, allow=True)
            await _paused(other, operator)
            await until(lambda: not serving.tools(operator))
    finally:
        await asyncio.to_thread(serve.__exit__, None, None, None)


async def _paused(serving: Serving, operator: Caller) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await serving.servers.pause(operator, "alpha")
            except StoreUnavailableError:
                await asyncio.sleep(0.2)
            else:
                return
