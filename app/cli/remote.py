"""What commands that talk to a running service share: its address and key, and the words for its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from app.cli.terminal import FAILED, UNREACHABLE, USAGE, fail

if TYPE_CHECKING:
    from app.client import Sluice, SluiceError

MOST_NAMES = 30
DEFAULT_URL = "http://127.0.0.1:8000"
Url = Annotated[str, typer.Option(envvar="SLUICE_URL", help="Address of the service.")]
Key = Annotated[
    str | None,
    typer.Option(
        envvar="SLUICE_API_KEY", help="API key; the variable keeps it out of the list of processes."
    ),
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")]


@contextmanager
def service(
    url: str, key: str | None, timeout: float, *, transport: Literal["rest", "mcp"] = "rest"
) -> Iterator["Sluice"]:
    """Open a client; its errors end the command with a sentence."""
    from app.client import Sluice, SluiceError, UnauthenticatedError, UnreachableError

    if not url.startswith(("http://", "https://")):
        fail("The address of the service begins with http:// or https://: set SLUICE_URL or --url.", USAGE)
    try:
        with Sluice(url, key, transport=transport, timeout=timeout) as client:
            yield client
    except UnauthenticatedError as error:
        if key is None:
            fail("The service needs an API key: set SLUICE_API_KEY (the first start printed one).")
        fail(with_id(error))
    except UnreachableError as error:
        if error.sent:
            fail(f"{error.message} Whether the work was done is unknown; the audit log knows.", UNREACHABLE)
        fail(f"No service answers at {url}: start one with `sluice serve`, or set SLUICE_URL.", UNREACHABLE)
    except SluiceError as error:
        fail(with_id(error), FAILED)


def with_id(error: "SluiceError") -> str:
    """Return an error as one line: the sentence, where the fault is, the code, and the id for the log."""
    parts = [error.code]
    if "pointer" in error.details:
        parts.append(f"at {error.details['pointer'] or '/'}")
    known = error.details.get("known") or error.details.get("arguments")
    if isinstance(known, list) and len(known) <= MOST_NAMES:
        parts.append(f"known are {', '.join(map(str, known))}")
    if error.retry_after is not None:
        parts.append(f"try again in {error.retry_after:g} s")
    if error.request_id is not None:
        parts.append(f"request {error.request_id}")
    return f"{error.message} ({', '.join(parts)})"
