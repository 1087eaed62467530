"""Shared by commands that call a running service: its address and key, and its errors as sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.access.token_file import token_path
from app.cli.addresses import is_open_on_the_way
from app.cli.terminal import FAILED, UNREACHABLE, USAGE, fail, note

if TYPE_CHECKING:
    from app.cli.calls import CallError, ServiceCalls

MOST_NAMES = 30
DEFAULT_URL = "http://127.0.0.1:8000"
Url = Annotated[str, typer.Option(envvar="SLUICE_URL", help="URL of the service.")]
Key = Annotated[
    str | None,
    typer.Option(envvar="SLUICE_API_KEY", help="API key; the variable keeps it out of the process list."),
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds to wait for a response.")]


UNREACHED = "start one with `sluice serve`, or set SLUICE_URL"


@contextmanager
def service(
    url: str, key: str | None, timeout: float, unreached: str = UNREACHED
) -> Iterator["ServiceCalls"]:
    """Reach a service; errors of its calls end the command with one sentence.

    ``unreached`` says how to mend that no service answers.
    """
    from app.cli.calls import CallError, NoAnswerError, ServiceCalls

    if not url.startswith(("http://", "https://")):
        fail("The URL of the service must begin with http:// or https://: set SLUICE_URL or --url.", USAGE)
    key = key or signed_in(url)
    if key is not None and is_open_on_the_way(url):
        note(f"sluice: the key can be read on the way to {url}: use https://.")
    try:
        with ServiceCalls(url, key, timeout) as calls:
            yield calls
    except CallError as error:
        if error.code == "unauthenticated" and key is None:
            fail(
                "The service needs a key: set SLUICE_API_KEY (the first start printed one), or `sluice auth login`."
            )
        fail(with_id(error), FAILED)
    except NoAnswerError as error:
        if error.sent:
            fail(f"{error.message} The work may have been done; check the audit log.", UNREACHABLE)
        fail(f"No service answers at {url}: {unreached}.", UNREACHABLE)


def signed_in(url: str) -> str | None:
    """Return the token with which somebody signed in to a service, None: nobody did."""
    if not token_path().exists():
        return None
    from app.cli.access.sign_in import current_token

    return current_token(url)


def with_id(error: "CallError") -> str:
    """Return an error as one line: the message, its code, the place of the fault, and the request id."""
    parts = [error.code]
    if "pointer" in error.details:
        parts.append(f"at {error.details['pointer'] or '/'}")
    valid = error.details.get("known") or error.details.get("arguments")
    if isinstance(valid, list) and len(valid) <= MOST_NAMES:
        parts.append(f"valid: {', '.join(map(str, valid))}")
    if error.retry_after is not None:
        parts.append(f"try again in {error.retry_after:g} s")
    if error.request_id is not None:
        parts.append(f"request {error.request_id}")
    return f"{error.message} ({', '.join(parts)})"
