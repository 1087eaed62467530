"""Write what comes piece by piece from a service on this host."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.terminal import fail

if TYPE_CHECKING:
    from app.assembly import Services


async def once(piece: bytes) -> AsyncIterator[bytes]:
    """Return the one piece that there is."""
    yield piece


def write(pieces: "Callable[[Services], Awaitable[AsyncIterator[bytes]]]", output: Path | None) -> None:
    """Write what comes to a new file, or to standard output."""
    import sys

    from app.cli.host import on_host

    async def written(host: "Services") -> None:
        coming = await pieces(host)
        if output is None:
            async for piece in coming:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        try:
            with output.open("xb") as file:
                async for piece in coming:
                    file.write(piece)
        except FileExistsError:
            fail(f"{output} already exists: choose another name.")
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror}.")

    on_host(written)
