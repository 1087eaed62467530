"""FastMCP's proxy before one upstream, stateless and with JSON answers; run by the Python of its own environment."""

import sys

import uvicorn
from fastmcp.server import create_proxy
from starlette.responses import PlainTextResponse

proxy = create_proxy(sys.argv[2], name="bench")


@proxy.custom_route("/", methods=["GET"])
async def probe(_request):
    """Answer the benchmark's question whether the proxy is up."""
    return PlainTextResponse("up")


if __name__ == "__main__":
    served = proxy.http_app(path="/mcp", stateless_http=True, json_response=True)
    uvicorn.run(served, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
