"""What a token of an issuer costs over a key once it was verified: in a whole request, and where it is looked at."""

import asyncio
import gc
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.assembly import opened
from app.core.access import DEFAULT_TENANT, ApiKey, Caller, Role
from app.core.contracts.policy import Policy
from app.main import create_app
from app.services.access.bootstrap import bootstrap
from app.services.access.credentials import Authenticator
from app.settings import (
    AuthSettings,
    DatabaseSettings,
    DetectionSettings,
    KeysSettings,
    Settings,
    TelemetrySettings,
)
from app.settings.auth import IssuerSettings
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.surfaces import CONTEXT, NAME
from tests.integration.token_issuer import AUDIENCE, token_issuer
from tests.protocol.mcp_wire import ENVELOPE, MODERN

WARMING = 200
"""So many calls come before those that are measured."""
ADDRESS = "127.0.0.1"
ASKED = 20
"""How often a credential is looked at between two readings of the clock, for each call of the sizes."""


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of CPU time, by key and by token."""
    with token_issuer() as issuer:
        trusting = IssuerSettings.model_validate(
            {
                "issuer": issuer.url,
                "audience": [AUDIENCE],
                "maxTokenAge": 86_400,
                "rules": [{"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]}],
            }
        )
        token = issuer.token(exp=issuer.claims()["iat"] + 86_400)
        rows = [_row("the credential alone", asyncio.run(_alone(sizes, folder, trusting, token)))]
        whole = asyncio.run(_requests(sizes, folder, trusting, token))
        rows += [_row(name, pairs) for name, pairs in whole.items()]
        assert issuer.asked["/keys"] >= 1
    yield table(
        "CPU time of the server per call with an API key and with a cached token, µs",
        ("what", "key", "token", "token over key"),
        rows,
        "A token of 400 bytes that was verified once (ES256), `timestamp_injector` on 300 bytes, SQLite. Calls with "
        "key and token in turn in one process, without sockets: CPU of the event loop's thread, medians, so that "
        "sealing in the background is left out; the last column is the median of the differences between neighbours. "
        "Alone: `Authenticator.authenticate`. A whole request with a token also names the subject in the record.",
    )


def _settings(folder: Path, trusting: IssuerSettings, key: str) -> Settings:
    folder.mkdir(exist_ok=True)
    return Settings(
        database=DatabaseSettings(url=SecretStr(f"sqlite:///{folder}/identity.db")),
        keys=KeysSettings(file=folder / "identity.json"),
        auth=AuthSettings(bootstrap_key=SecretStr(key), issuers=(trusting,)),
        detection=DetectionSettings(warm=False),
        telemetry=TelemetrySettings(log_level="warning"),
    )


def _row(name: str, pairs: list[tuple[float, float]]) -> tuple[str, float, float, float]:
    keys, tokens = zip(*pairs, strict=True)
    over = statistics.median(token - key for key, token in pairs)
    return name, max(statistics.median(keys), 0.1), max(statistics.median(tokens), 0.1), over


async def _alone(
    sizes: Sizes, folder: Path, trusting: IssuerSettings, token: str
) -> list[tuple[float, float]]:
    """Return µs by key and by token, for each round, without HTTP."""
    key = str(ApiKey.generate())
    settings = _settings(folder / "alone", trusting, key)
    async with opened(settings) as services:
        authenticator = services.access.authenticator
        await bootstrap(services.access, key, settings.environment)
        for credential in (key, token):
            caller = await authenticator.authenticate(credential, ADDRESS)
            assert Role.INVOKER in caller.roles
        times = sizes.calls * ASKED
        return [
            (await _asked(authenticator, key, times), await _asked(authenticator, token, times))
            for _ in range(sizes.rounds)
        ]


async def _asked(authenticator: Authenticator, credential: str, times: int) -> float:
    gc.collect()
    begin = time.thread_time_ns()
    for _ in range(times):
        await authenticator.authenticate(credential, ADDRESS)
    return (time.thread_time_ns() - begin) / times / 1000


async def _requests(
    sizes: Sizes, folder: Path, trusting: IssuerSettings, token: str
) -> dict[str, list[tuple[float, float]]]:
    """Return µs by key and by token, for each pair of blocks of whole requests."""
    key = str(ApiKey.generate())
    app = create_app(_settings(folder, trusting, key))
    found: dict[str, list[tuple[float, float]]] = {}
    async with app.router.lifespan_context(app) as state:
        limits = {"requests_per_second": 1e6, "burst": 10**6, "in_flight": 1000}
        policy = Policy.model_validate({"limits": limits})
        operator = Caller(DEFAULT_TENANT, "0badcafe", frozenset({Role.OPERATOR}))
        await app.state.services.policies.put(operator, None, policy)
        scope = {"type": "http", "http_version": "1.1", "app": app, "state": dict(state or {})}
        for name, (path, more, body) in _CASES.items():
            calls = [
                _Call(app, {**scope, **_target(path, credential, more, body)}, body)
                for credential in (key, token)
            ]
            for number in range(WARMING):
                await calls[number % 2].once()
            pairs = found.setdefault(name, [])
            for number in range(sizes.rounds * sizes.calls):
                # Which of the two comes first must not matter.
                first, second = calls if number % 2 else calls[::-1]
                times = await first.once(), await second.once()
                pairs.append(times if number % 2 else times[::-1])
    return found


_PARAMS = {"name": NAME, "arguments": {}, "context": CONTEXT, "_meta": ENVELOPE}
_INVOKE = {"jsonrpc": "2.0", "id": 1, "method": "middleware/invoke", "params": _PARAMS}
_MCP = {"mcp-protocol-version": MODERN, "mcp-method": "middleware/invoke", "mcp-name": NAME}
_CASES: dict[str, tuple[str, dict[str, str], bytes]] = {
    "`middleware/invoke` over REST": (
        f"/api/v1/middleware/{NAME}/invoke",
        {},
        json.dumps({"arguments": {}, "context": CONTEXT}).encode(),
    ),
    "the same over MCP, revision 2026-07-28": ("/mcp", _MCP, json.dumps(_INVOKE).encode()),
}


def _target(path: str, credential: str, more: dict[str, str], body: bytes) -> dict[str, Any]:
    """Return what the ASGI scope of a request says of its target and its headers."""
    headers = {
        "host": "localhost",
        "authorization": f"Bearer {credential}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        **more,
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    place = {"path": path, "raw_path": path.encode(), "root_path": "", "query_string": b""}
    peers = {"client": (ADDRESS, 40_000), "server": (ADDRESS, 8000), "scheme": "http"}
    return {"method": "POST", "headers": raw, **place, **peers}


@dataclass
class _Call:
    """One request that is sent again and again, straight to the application."""

    app: Any
    scope: dict[str, Any]
    body: bytes

    async def once(self) -> float:
        """Send it; return the CPU time of the event loop's thread, in µs."""
        begin = time.thread_time_ns()
        await self._sent()
        return (time.thread_time_ns() - begin) / 1000

    async def _sent(self) -> None:
        messages = iter([{"type": "http.request", "body": self.body, "more_body": False}])

        async def receive() -> Any:
            for message in messages:
                return message
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                assert message["status"] == HTTPStatus.OK

        await self.app({**self.scope, "state": self.scope["state"].copy()}, receive, send)
