"""An independent client that can be asked, the SDK's own, behind servers of each revision."""

from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.protocol.aggregated_service import OnlyHandshake, OnlyModern
from tests.protocol.mcp_service import KEY
from tests.protocol.test_mcp_callbacks import behind
from tests.protocol.test_mcp_input_required import wanting


async def elicited(_context: Any, _params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def sampled(_context: Any, _params: Any) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def rooted(_context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///home/ada")])


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("era", [None, OnlyHandshake, OnlyModern])
async def test_the_python_client_is_asked_in_the_way_of_its_revision(tmp_path, mode, era):
    headers = {"authorization": f"Bearer {KEY}"}
    async with (
        behind(tmp_path, wanting(), era, roots=True) as (url, _),
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(
            streamable_http_client(url, http_client=http),
            mode=mode,
            elicitation_callback=elicited,
            sampling_callback=sampled,
            list_roots_callback=rooted,
        ) as client,
    ):
        # A server asks by requests in the handshake revision and by results in the modern one.
        by_request = era is OnlyHandshake or (era is None and mode == "legacy")
        if by_request:
            sample = await client.call_tool("alpha__sample", {})
            elicit = await client.call_tool("alpha__elicit", {})
            roots = await client.call_tool("alpha__roots", {})
            said = [one.content[0].text for one in (sample, elicit, roots)]
            assert said == ["model said Paris", 'accept {"name": "Ada"}', "file:///home/ada"]
        else:
            wanted = await client.call_tool("alpha__wants", {})
            assert wanted.content[0].text == "second Ada Paris"
