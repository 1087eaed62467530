"""Chromium without a window, driven over its DevTools protocol."""

import asyncio
import itertools
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp

from tests.outside.debian import program

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
START_S = 45.0


class Page:
    """One tab: open an address, then ask what it shows."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.complaints: list[str] = []
        """What the page logged as an error or threw."""

    async def open(self, address: str) -> None:
        """Go to an address and return once the page has loaded."""
        await self._call("Page.enable")
        await self._call("Runtime.enable")
        await self._call("Log.enable")
        answer = await self._call("Page.navigate", url=address)
        assert "errorText" not in answer, answer["errorText"]
        while await self.evaluate("document.readyState") != "complete":
            await asyncio.sleep(0.02)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page, as JSON has it."""
        answer = await self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json()
            if message.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(message["params"]["exceptionDetails"]["text"])
            if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
                self.complaints.append(message["params"]["entry"]["text"])
            if message.get("id") == number:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result


@asynccontextmanager
async def browsing(folder: Path) -> AsyncIterator[Page]:
    """Start a browser whose profile lies in an empty folder, give its tab, and end it with all its processes."""
    process = await asyncio.create_subprocess_exec(
        program("chromium") or "chromium",
        *FLAGS,
        f"--user-data-dir={folder}",
        "about:blank",
        env={**os.environ, "HOME": str(folder)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(START_S):
            port = await _port(folder / "DevToolsActivePort")
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
            http.put("/json/new?about:blank") as made,
        ):
            address = (await made.json())["webSocketDebuggerUrl"]
            async with http.ws_connect(address, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _port(file: Path) -> int:
    while True:
        with suppress(FileNotFoundError, ValueError, IndexError):
            return int(file.read_text().splitlines()[0])
        await asyncio.sleep(0.05)
