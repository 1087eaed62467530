"""The MCP endpoints read no query: one is refused, so that no key or option in it is silently dropped."""

from typing import Any

import pytest

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, client


@pytest.fixture
def sqlite_url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/sluice.db"


async def test_a_query_at_an_mcp_endpoint_is_refused_in_either_revision(sqlite_url: str) -> None:
    async with service(sqlite_url) as (url, _):
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                assert "result" in (await wire.call("tools/list")).text
                for path in ("", "/interceptors", "/groups/some"):
                    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                    headers = {"mcp-protocol-version": revision, "authorization": f"Bearer {KEY}"}
                    answer = await wire.http.post(f"{url}{path}?api_key=1", json=message, headers=headers)
                    error = answer.json()["error"]
                    assert (answer.status_code, error["code"]) == (400, -32600), path
                    assert error["data"]["parameter"] == "api_key"
                    assert error["data"]["known"] == []
