"""What a gateway in Python can reach that does nothing: aiohttp in front of aiohttp, bytes as they come."""

import sys
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

PORT, PROVIDER = int(sys.argv[1]), sys.argv[2]
SESSION = web.AppKey("session", aiohttp.ClientSession)


async def pooled(app: web.Application) -> AsyncIterator[None]:
    """Keep the connections."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        app[SESSION] = session
        yield


async def forward(request: web.Request) -> web.StreamResponse:
    """Send the body on and stream the answer back."""
    body = await request.read()
    headers = {"Content-Type": "application/json"}
    async with request.app[SESSION].post(PROVIDER + request.path, data=body, headers=headers) as answered:
        answer = web.StreamResponse(
            status=answered.status, headers={"Content-Type": answered.headers["Content-Type"]}
        )
        await answer.prepare(request)
        async for part in answered.content.iter_any():
            await answer.write(part)
        await answer.write_eof()
        return answer


async def probe(_request: web.Request) -> web.Response:
    """Answer the benchmark's question whether the forwarder is up."""
    return web.Response()


def main() -> None:
    """Serve on the port that the command line names."""
    app = web.Application(client_max_size=2**26)
    app.cleanup_ctx.append(pooled)
    app.router.add_get("/", probe)
    app.router.add_post("/v1/chat/completions", forward)
    web.run_app(
        app, host="127.0.0.1", port=PORT, print=None, access_log=None, backlog=2048, shutdown_timeout=1
    )


if __name__ == "__main__":
    main()
