"""A running service with two providers behind it, and the packages with which applications call them."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import anthropic
import httpx2
import openai
import pytest

from tests.e2e.running import Service, running, sluice
from tests.gateway.provider import KEY, Provider, provider


@dataclass(frozen=True)
class Gateway:
    """The service, what stands behind it, and a key with all roles."""

    service: Service
    provider: Provider
    http: httpx2.Client
    key: str
    clients: ExitStack
    """Closes the clients of one test at its end."""

    def new_key(self, *roles: str) -> str:
        """Return a new key with these roles, none of which waits for an approval."""
        answer = self.http.post("/api/v1/keys", json={"roles": list(roles)})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["key"])

    def host_key(self, *roles: str) -> str:
        """Return a new key that the host makes, so that it may restore at once."""
        named = [part for role in roles for part in ("--role", role)]
        made = sluice("keys", "create", *named, environment=self.service.environment)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def put_provider(self, name: str, **entry: Any) -> None:
        """Store a provider; without other words it is the fake one."""
        base = self.provider.url + ("/v1" if entry.get("kind", "openai") == "openai" else "/a")
        document = {"kind": "openai", "baseUrl": base, "apiKey": KEY, "allowedNetworks": ["127.0.0.0/8"]}
        answer = self.http.put(f"/api/v1/providers/{name}", json={**document, **entry})
        assert answer.status_code in {200, 201}, answer.text

    def put_policy(self, **policy: Any) -> None:
        version = self.http.get("/api/v1/policies").json()["version"]
        answer = self.http.put(f"/api/v1/policies?expected_version={version}", json=policy)
        assert answer.status_code == 200, answer.text

    def openai(self, key: str | None = None, **options: Any) -> openai.OpenAI:
        """Return OpenAI's client, with the one line changed."""
        base = f"{self.service.url}/openai/v1"
        client = openai.OpenAI(base_url=base, api_key=key or self.key, max_retries=0, **options)
        return self.clients.enter_context(client)

    def anthropic(self, key: str | None = None, **options: Any) -> anthropic.Anthropic:
        """Return Anthropic's client, with the one line changed."""
        base = f"{self.service.url}/anthropic"
        client = anthropic.Anthropic(base_url=base, api_key=key or self.key, max_retries=0, **options)
        return self.clients.enter_context(client)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx2.Response:
        """Send a request as a program without a client package does."""
        headers = {"authorization": f"Bearer {self.key}", **options.pop("headers", {})}
        return self.http.post(path, json=body, headers=headers, **options)

    def events(self, action: str) -> list[dict[str, Any]]:
        """Return what is on record under ``action``, newest first."""
        answer = self.http.get("/api/v1/audit/events", params={"action": action, "limit": 50})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def await_answer(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        """Wait for such an event of an answer: it is stored after the client has heard of the end."""
        until = time.monotonic() + 20
        while not holds(newest := self.events("gateway.answer")[0]):
            assert time.monotonic() < until, newest
            time.sleep(0.1)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Return a running service; tests share it, and each has a conversation of its own."""
    networks = {"SLUICE_UPSTREAMS__ALLOWED_NETWORKS": "127.0.0.0/8"}
    with provider() as behind, running(tmp_path_factory.mktemp("gateway"), **networks) as service:
        headers = {"authorization": f"Bearer {service.key}"}
        with httpx2.Client(base_url=service.url, headers=headers, timeout=60, trust_env=False) as http:
            made = Gateway(service, behind, http, service.key, ExitStack())
            made.put_provider("main", models=["gpt-*", "text-*"], aliases={"fast": "gpt-5-mini"})
            made.put_provider("claude", kind="anthropic", models=["claude-*"])
            yield made


@pytest.fixture
def gateway(shared: Gateway) -> Iterator[Gateway]:
    """Return the service with a provider that has seen nothing and answers as usual."""
    behind = shared.provider
    behind.arrived.clear()
    behind.answer, behind.pieces, behind.pause_s, behind.left = None, 3, 0, 0
    with shared.clients:
        yield shared


@pytest.fixture
def conversation() -> dict[str, str]:
    """Return headers that name a conversation of this test alone."""
    return {"X-Sluice-Scope": f"test-{uuid4().hex}"}
