"""Print the way of one request through the service: ``python -m tests.way``, or ``make way``.

The service runs in this process, as ``create_app`` builds it, on SQLite in a temporary folder, with one MCP server
behind it. Each request is sent once before it is traced, so that caches are filled as in daily use. Printed are the
files of ``app`` in the order in which they are entered, each with the first function that is called there, and three
figures: files, rooms (the folders and files directly in ``app``), and moves (calls from a function of one room to a
function of another, whatever libraries lie between them). Work in other threads and processes is not seen. Of several
traces only the files of all count, and nothing that the service does again and again in the background: on a busy
machine such work runs during a request, and it is no part of it.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx2

import app
from app.services.background import Background
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, Wire, client
from tests.protocol.passing_service import call, passing
from tests.upstreams.scripted import ScriptedServer

ROOT: Final = Path(app.__file__).parent
_NAME: Final = "timestamp_injector"
_TRIES: Final = 5
_CONTEXT: Final = [{"type": "text", "text": "What day is it?"}]

Send = Callable[[], Awaitable[Any]]
"""Send one request and raise unless it is answered as it should be."""


@dataclass(frozen=True)
class Entry:
    """The first call of a function in a file; ``file`` is relative to the folder of ``app``."""

    file: str
    function: str
    line: int


@dataclass
class Way:
    """What one request went through; ``entries`` has one element for each file, in the order of the request."""

    entries: dict[str, Entry] = field(default_factory=dict)
    moves: int = 0

    @property
    def rooms(self) -> list[str]:
        """Return the rooms in the order in which they are entered."""
        return list(dict.fromkeys(room_of(file) for file in self.entries))


def room_of(file: str) -> str:
    """Return the room of a file: the folder, or the file, directly in ``app``."""
    return file.partition("/")[0]


def is_in_the_background(task: asyncio.Task[Any] | None) -> bool:
    """Return whether the task does something again and again, whatever requests come."""
    coroutine = task.get_coro() if task is not None else None
    return getattr(coroutine, "cr_code", None) is Background._repeat.__code__


@contextmanager
def traced(way: Way) -> Iterator[None]:
    """Write into ``way`` what this thread calls meanwhile."""
    prefix = f"{ROOT}/"
    begun: set[FrameType] = set()  # a coroutine is "called" again each time it goes on

    def file_of(frame: FrameType | None) -> str | None:
        while frame is not None:
            if frame.f_code.co_filename.startswith(prefix):
                return frame.f_code.co_filename.removeprefix(prefix)
            frame = frame.f_back
        return None

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or frame in begun or not frame.f_code.co_filename.startswith(prefix):
            return
        if is_in_the_background(asyncio.current_task()):
            return
        begun.add(frame)
        file = frame.f_code.co_filename.removeprefix(prefix)
        way.entries.setdefault(file, Entry(file, frame.f_code.co_qualname, frame.f_code.co_firstlineno))
        caller = file_of(frame.f_back)
        way.moves += caller is not None and room_of(caller) != room_of(file)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


@asynccontextmanager
async def requests(folder: Path) -> AsyncIterator[Mapping[str, Send]]:
    """Serve, and give the requests whose ways are of interest."""
    async with (
        passing(folder, ScriptedServer("alpha")) as (url, _),
        client(url, HANDSHAKE, str(KEY)) as old,
        client(url, MODERN, str(KEY)) as new,
    ):
        rest = httpx2.URL(url).copy_with(path=f"/api/v1/middleware/{_NAME}/invoke")

        async def over_rest() -> None:
            answer = await old.http.post(rest, json={"context": _CONTEXT})
            answer.raise_for_status()

        yield {
            "middleware/invoke over MCP, revision 2026-07-28": lambda: _invoke(new),
            "middleware/invoke over MCP, handshake revision": lambda: _invoke(old),
            "middleware/invoke over REST": over_rest,
            "a forwarded tools/call, revision 2026-07-28": lambda: _call_tool(new),
        }


async def _invoke(wire: Wire) -> None:
    reply = await wire.call("middleware/invoke", name=_NAME, context=_CONTEXT)
    assert "Current time" in reply.result["content"][0]["text"]


async def _call_tool(wire: Wire) -> None:
    reply = await call(wire, "alpha__echo", {"text": "x"})
    assert not reply.result.get("isError")


async def ways() -> dict[str, Way]:
    """Return the way of each request by what it is."""
    found: dict[str, Way] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with requests(Path(folder)) as sent:
            for name, send in sent.items():
                await send()
                await asyncio.sleep(0.2)  # what the first request left to do is not a part of the second
                tries = [await _traced_once(send) for _ in range(_TRIES)]
                found[name] = common(tries)
    return found


def common(tries: Sequence[Way]) -> Way:
    """Return what all tries went through, in the order of the first."""
    first = tries[0].entries
    files = [file for file in first if all(file in other.entries for other in tries)]
    return Way({file: first[file] for file in files}, min(other.moves for other in tries))


async def _traced_once(send: Send) -> Way:
    way = Way()
    with traced(way):
        await send()
    return way


def main() -> None:
    """Print the ways."""
    parser = argparse.ArgumentParser(description="Print the way of a request through the service.")
    parser.add_argument("--figures", action="store_true", help="print the figures only")
    figures_only = parser.parse_args().figures
    for name, way in asyncio.run(ways()).items():
        print(f"{name}: {len(way.entries)} files, {len(way.rooms)} rooms, {way.moves} moves between rooms")
        if not figures_only:
            for number, entry in enumerate(way.entries.values(), 1):
                print(f"  {number:2}  app/{entry.file}:{entry.line}  {entry.function}")


if __name__ == "__main__":
    main()
