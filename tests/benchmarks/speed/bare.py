"""What nothing can be faster than on this stack: a Starlette handler that parses JSON and answers JSON.

Started with a file beside the port, it appends a line to it for each request and waits until the line is on the disk:
what is waited for costs CPU time, too, since others use the caches of the processor meanwhile.
"""

import asyncio
import json
import os
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

RECORD = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if len(sys.argv) > 2 else None


async def answer(request: Request) -> JSONResponse:
    """Put a line in front of the first text, as the measured middleware does."""
    if request.method == "GET":
        return JSONResponse({})
    context = json.loads(await request.body())["context"]
    context[0]["text"] = f"[Current time: Saturday, October 4, 2025, 3:42 PM UTC]\n\n{context[0]['text']}"
    if RECORD is not None:
        await asyncio.to_thread(kept, RECORD)
    return JSONResponse({"content": context, "metadata": {}})


def kept(file: int) -> None:
    """Return once a line more is on the disk."""
    os.write(file, b"one request\n")
    os.fdatasync(file)


if __name__ == "__main__":
    handler = Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])
    uvicorn.run(handler, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
