"""What nothing can be faster than on this stack: a Starlette handler that parses JSON and answers JSON."""

import json
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def answer(request: Request) -> JSONResponse:
    """Put a line in front of the first text, as the measured middleware does."""
    if request.method == "GET":
        return JSONResponse({})
    context = json.loads(await request.body())["context"]
    context[0]["text"] = f"[Current time: Saturday, October 4, 2025, 3:42 PM UTC]\n\n{context[0]['text']}"
    return JSONResponse({"content": context, "metadata": {}})


if __name__ == "__main__":
    handler = Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])
    uvicorn.run(handler, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
