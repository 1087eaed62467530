"""A key that waits for an approval restores through no door: REST and both revisions of MCP."""

from typing import Any

import httpx2
import pytest

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, client


@pytest.fixture
def sqlite_url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/sluice.db"


async def test_a_waiting_key_restores_through_no_door_until_it_is_approved(sqlite_url: str) -> None:
    async with service(sqlite_url, warm=True) as (url, _):
        api = url.removesuffix("/mcp") + "/api/v1"
        async with httpx2.AsyncClient(timeout=60) as http:

            async def post(path: str, key: str, body: Any = None) -> Any:
                headers = {"authorization": f"Bearer {key}"}
                return await http.post(f"{api}{path}", json=body, headers=headers)

            async def made(role: str, by: str) -> Any:
                return await post("/keys", by, {"roles": [role, "invoker"]})

            first = await made("restorer", str(KEY))
            assert first.status_code == 201, "development's first key is exempt"
            ada, ben = [(await made("key-custodian", str(KEY))).json()["key"] for _ in range(2)]
            waiting = await made("restorer", ada)
            assert (waiting.status_code, waiting.json()["state"]) == (202, "pending")
            secret = waiting.json()["key"]
            operator = await post("/keys", ada, {"roles": ["operator"]})
            assert (operator.status_code, operator.json()["state"]) == (202, "pending")
            headers = {"authorization": f"Bearer {operator.json()['key']}"}

            async def lists(revision: str) -> int:
                async with client(url, revision, str(KEY)) as wire:
                    body = wire.body("concerns/list", {})
                    sent = {**wire.headers("concerns/list"), **headers}
                    return int((await wire.http.post(url, json=body, headers=sent)).status_code)

            assert [await lists(revision) for revision in REVISIONS] == [403, 403]
            assert (await http.get(f"{api}/policies", headers=headers)).status_code == 403
            assert (await post(f"/keys/{operator.json()['id']}/approve", ben)).status_code == 200
            assert 403 not in [await lists(revision) for revision in REVISIONS]
            assert (await http.get(f"{api}/policies", headers=headers)).status_code == 200
            text = {"type": "text", "text": "My number is 202-555-0143."}
            done = await post("/middleware/pii_redaction/invoke", secret, {"context": [text]})
            scope, shown = done.json()["metadata"]["scope"], done.json()["content"][0]

            async def doors() -> list[str]:
                body = {"context": [shown], "arguments": {"scope": scope}}
                seen = [(await post("/middleware/pii_restoration/invoke", secret, body)).text]
                for revision in REVISIONS:
                    async with client(url, revision, secret) as wire:
                        told = await wire.invoke(shown, name="pii_restoration", arguments={"scope": scope})
                        seen.append(told.text)
                return seen

            for answer in await doors():
                assert "202-555-0143" not in answer
                assert "forbidden" in answer
            assert (await post(f"/keys/{waiting.json()['id']}/approve", ben)).status_code == 200
            for answer in await doors():
                assert "202-555-0143" in answer
