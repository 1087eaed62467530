"""Calls of a running service by REST, for tests of what stands between it and others."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.e2e.running import Service

PATIENCE_S = 30.0


@contextmanager
def calling(service: Service, key: str | None = None) -> Iterator[httpx2.Client]:
    """Open a client with a key, by default the service's first."""
    headers = {"authorization": f"Bearer {key or service.key}"}
    with httpx2.Client(base_url=service.url, headers=headers, timeout=30, trust_env=False) as http:
        yield http


def invoked(http: httpx2.Client, name: str, context: list[Any], **arguments: Any) -> list[Any]:
    """Return the content that a middleware makes of ``context``."""
    answer = http.post(f"/api/v1/middleware/{name}/invoke", json={"context": context, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    content: list[Any] = answer.json()["content"]
    return content


def eventually(holds: Callable[[], bool]) -> None:
    """Ask until it holds."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)
