"""What a token of an issuer costs over a key once it was verified: in a whole request, and where it is looked at."""

import asyncio
import gc
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.assembly import opened
from app.core.access import ApiKey, Role
from app.services.access.bootstrap import bootstrap
from app.services.access.credentials import Authenticator
from app.settings import AuthSettings, DatabaseSettings, KeysSettings, Settings
from app.settings.auth import IssuerSettings
from tests.benchmarks.speed.processes import Measured, sluice
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.surfaces import CLIENTS, CONTEXT, NAME
from tests.benchmarks.speed.wire import drive, lift_limits, modern, request
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer

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
        settings = f"[{trusting.model_dump_json(by_alias=True, exclude_none=True)}]"
        rows = [_row("the credential alone", asyncio.run(_alone(sizes, folder, trusting, token)))]
        with sluice(folder, SLUICE_AUTH__ISSUERS=settings) as service:
            for name, pairs in asyncio.run(_requests(service, sizes, issuer, token)).items():
                rows.append(_row(name, pairs))
    yield table(
        "CPU time of the server per call with an API key and with a cached token, µs",
        ("what", "key", "token", "token over key"),
        rows,
        "A token of 400 bytes that was verified once (ES256), `timestamp_injector` on 300 bytes, SQLite. Rounds of key "
        "and token in turn on one process; the last column is the median of the differences within a round. Alone: "
        "`Authenticator.authenticate` in process. Whole requests are all threads of the server, and the token's also "
        "reads a longer header and names the subject in the record.",
    )


def _row(name: str, pairs: list[tuple[float, float]]) -> tuple[str, float, float, float]:
    keys, tokens = zip(*pairs, strict=True)
    over = statistics.median(token - key for key, token in pairs)
    return name, max(statistics.median(keys), 0.1), max(statistics.median(tokens), 0.1), over


async def _alone(
    sizes: Sizes, folder: Path, trusting: IssuerSettings, token: str
) -> list[tuple[float, float]]:
    """Return µs by key and by token, for each round, without HTTP."""
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(f"sqlite:///{folder}/identity.db")),
        keys=KeysSettings(file=folder / "identity.json"),
        auth=AuthSettings(issuers=(trusting,)),
    )
    async with opened(settings) as services:
        authenticator = services.access.authenticator
        key = str(ApiKey.generate())
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
    service: Measured, sizes: Sizes, issuer: Issuer, token: str
) -> dict[str, list[tuple[float, float]]]:
    """Return µs by key and by token, for each round of whole requests."""
    await lift_limits(service)
    bearer = {"Authorization": f"Bearer {token}"}
    body: dict[str, Any] = {"arguments": {}, "context": CONTEXT}
    key_modern = modern(service, NAME, CONTEXT)
    cases = {
        "REST": tuple(
            request(service, f"/api/v1/middleware/{NAME}/invoke", body, headers) for headers in ({}, bearer)
        ),
        "MCP modern": (key_modern, key_modern.replace(service.key.encode(), token.encode())),
    }
    found: dict[str, list[tuple[float, float]]] = {}
    for name, pair in cases.items():
        for clients in CLIENTS:
            for data in pair:
                await drive(service, [data] * (sizes.calls // 10), clients)
            pairs = found.setdefault(f"{name}, {clients} at once", [])
            for _ in range(sizes.rounds):
                key_us, token_us = [await _driven(service, data, sizes.calls, clients) for data in pair]
                pairs.append((key_us, token_us))
    assert issuer.asked["/keys"] >= 1
    return found


async def _driven(service: Measured, data: bytes, calls: int, clients: int) -> float:
    before = service.cpu_s()
    await drive(service, [data] * calls, clients)
    return (service.cpu_s() - before) / calls * 1e6
