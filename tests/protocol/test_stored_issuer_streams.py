"""Open streams of people whose issuer an operator removes: they end in both revisions, and the others go on."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from sqlalchemy import text

from app.core.access import SYSTEM_TENANT, Role
from app.core.identities import issuer_id
from app.protocol.server import Mcp
from tests.integration.rest_app import Rest, open_rest
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer
from tests.protocol.mcp_harness import build
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, connected
from tests.protocol.test_mcp_streams import getting, listening

BOTH = (Role.OPERATOR, Role.KEY_CUSTODIAN)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def rest(sqlite_database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(sqlite_database_url) as opened:
        yield opened
        async with opened.vault.database.system_transaction() as tx:
            await tx.execute(text("DELETE FROM trusted_issuer"))


def served(rest: Rest) -> Mcp:
    return build(authenticator=rest.services.authenticator, ping_s=0.05)


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_a_stream_ends_when_its_issuer_is_removed(rest: Rest, issuer: Issuer, revision: str) -> None:
    rule = {"when": {"groups": "llm-users"}, "tenant": rest.tenant, "roles": ["invoker"]}
    entry = {"issuer": issuer.url, "audience": [AUDIENCE], "rules": [rule]}
    added = await rest.call("POST", "/api/v1/issuers", entry, roles=BOTH, tenant=SYSTEM_TENANT)
    assert added.status_code == 201, added.text
    open_stream = getting if revision == HANDSHAKE else listening
    async with connected(served(rest), revision, issuer.token()) as person, open_stream(person) as ending:
        await ending.line()
        await asyncio.sleep(0.3)
        assert await ending.line(), "it goes on while its issuer is trusted"
        path = f"/api/v1/issuers/{issuer_id(issuer.url)}?expected_version=1"
        assert (await rest.call("DELETE", path, roles=BOTH, tenant=SYSTEM_TENANT)).status_code == 204
        async with asyncio.timeout(5):
            while await ending.line():
                pass
    # Whoever has a key is none the wiser.
    key = await rest.key(Role.INVOKER)
    async with connected(served(rest), revision, key) as service, open_stream(service) as other:
        assert await other.line()
