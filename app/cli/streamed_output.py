"""Write what comes piece by piece, from the services of this host or from a service."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from app.cli.target import CommandTarget
from app.cli.terminal import fail

if TYPE_CHECKING:
    from app.assembly import Services
    from app.cli.calls import ServiceCalls


async def once(piece: bytes) -> AsyncIterator[bytes]:
    """Return the one piece that there is."""
    yield piece


def write(
    target: CommandTarget,
    host: "Callable[[Services], Awaitable[AsyncIterator[bytes]]]",
    service: "Callable[[ServiceCalls], Iterator[bytes]]",
    output: Path | None,
) -> None:
    """Write what comes to a new file, or to standard output; what is cut off leaves no file."""

    async def here(services: "Services") -> None:
        coming = await host(services)
        with _opened(output) as file:
            async for piece in coming:
                file.write(piece)

    def there(calls: "ServiceCalls") -> None:
        coming = service(calls)
        first = next(coming, b"")  # a refusal comes before there is a file
        with _opened(output) as file:
            file.write(first)
            for piece in coming:
                file.write(piece)

    target.do(here, there)


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    import sys

    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = output.open("xb")
    except FileExistsError:
        fail(f"{output} already exists: choose another name.")
    except OSError as error:
        fail(f"{output} cannot be written: {error.strerror}.")
    try:
        with file:
            yield file
    except BaseException as error:
        output.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.strerror:
            fail(f"{output} cannot be written: {error.strerror}.")
        raise
