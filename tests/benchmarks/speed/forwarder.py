"""What a pooled forwarder in Python can reach: no checks, no credentials, no record; tools/list from memory."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
PORT, UPSTREAM = int(sys.argv[1]), sys.argv[2]


@contextlib.asynccontextmanager
async def pooled(app: Starlette) -> AsyncIterator[None]:
    """Keep the connections and the list of tools."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64)) as session:
        app.state.session = session
        asked = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
        async with session.post(UPSTREAM, data=asked, headers=HEADERS) as listed:
            app.state.tools = json.dumps((await listed.json())["result"])
        yield


async def forward(request: Request) -> Response:
    """Answer the list from memory and everything else from the upstream."""
    if request.method == "GET":
        return Response(b"{}")
    message = json.loads(await request.body())
    if message["method"] == "tools/list":
        body = f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{request.app.state.tools}}}'
        return Response(body, media_type="application/json")
    data = json.dumps(message)
    async with request.app.state.session.post(UPSTREAM, data=data, headers=HEADERS) as answered:
        return Response(await answered.read(), answered.status, media_type="application/json")


app = Starlette(routes=[Route("/mcp", forward, methods=["POST", "GET"])], lifespan=pooled)

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error", access_log=False)
