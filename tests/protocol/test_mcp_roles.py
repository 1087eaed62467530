"""Role before body: of a key that no method of MCP serves, nothing is parsed, at every endpoint and revision."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.core.access import DEFAULT_TENANT, SYSTEM_TENANT, Caller, Role
from app.services.access.access import HOST
from app.services.audit.audit import AuditQuery
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import ACCEPT, HANDSHAKE, MODERN

SERVED = {Role.INVOKER, Role.RESTORER, Role.OPERATOR}
BROKEN = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/li'
INSTALLATION = Caller(SYSTEM_TENANT, "00000000", frozenset({Role.AUDITOR}))
AUDITOR = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.AUDITOR}))


def headers(revision: str, key: str) -> dict[str, str]:
    named = {"mcp-method": "tools/list"} if revision == MODERN else {}
    return {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "accept": ACCEPT,
        "mcp-protocol-version": revision,
        **named,
    }


@pytest.mark.parametrize("path", ["", "/interceptors", "/groups/none"])
async def test_a_key_without_a_role_is_refused_before_its_body_is_parsed(tmp_path: Path, path: str) -> None:
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, app):
        access = app.state.services.access
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            for revision in (HANDSHAKE, MODERN):
                for role in Role:
                    made = await access.create_key(HOST, [role], tenant=DEFAULT_TENANT)
                    for body in (BROKEN, BROKEN + b"x" * 100_000):
                        answer = await http.post(
                            url + path, content=body, headers=headers(revision, str(made.key))
                        )
                        error: dict[str, Any] = answer.json()["error"]
                        if role not in SERVED:
                            assert (answer.status_code, error["data"]["code"]) == (403, "forbidden"), role
                            assert error["data"]["required"] == sorted(SERVED)
                        elif len(body) < 65_536 or role is not Role.OPERATOR:
                            # The control: the body was read, and is no JSON.
                            assert (answer.status_code, error["code"]) == (400, -32700), role
                        else:
                            assert (answer.status_code, error["data"]["code"]) == (403, "forbidden"), role
                none = await http.post(url + path, content=BROKEN, headers=headers(revision, "nobody"))
                assert none.status_code == 401
                control = await http.post(url, content=BROKEN, headers=headers(revision, str(KEY)))
                assert control.status_code == 400
        events = (await app.state.services.audit.query(AUDITOR, AuditQuery(action="mcp.request"))).items
        await access.authenticator.record_refused()
        asked = AuditQuery(action="access.authenticate")
        (strangers,) = (await app.state.services.audit.query(INSTALLATION, asked)).items
        assert (dict(strangers.counts), strangers.details["network"]) == ({"attempts": 2}, "127.0.0.0/24")
        assert {event.outcome for event in events} == {"refused"}
        assert len(events) == 2 * 2 * len(set(Role) - SERVED)
