"""Forwarded calls and lists per CPU second: the aggregator beside its rivals and beside a bare forwarder."""

import asyncio
import json
import secrets
import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.speed.processes import Measured, free_port, sluice, started
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes
from tests.benchmarks.speed.wire import (
    ENVELOPE,
    HANDSHAKE,
    MODERN,
    drive,
    exchange,
    lift_limits,
    open_session,
    request,
)

ENVIRONMENTS = Path(__file__).parents[3] / ".venv-rivals"
STATELESS = "2025-06-18"
TEXT = "x" * 32
CLIENTS = 16
Case = tuple[Measured, bytes, bytes]


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of forwarded calls and lists."""
    with ExitStack() as stack:
        upstream = f"http://127.0.0.1:{stack.enter_context(echo()).port}/mcp"
        cases = dict(case for start in STARTS for case in start(stack, upstream, folder))
        figures = asyncio.run(measured(cases, sizes))
    left_out = (
        ""
        if len(cases) == _ALL
        else " Rivals that are not installed are left out: `make bench` installs them."
    )
    yield table(
        "Requests per CPU second, one upstream of ten tools",
        ("through", "tools/call", "tools/list"),
        [(name, *values) for name, values in figures.items()],
        f"{CLIENTS} connections, 32 bytes of text, one process each, SQLite; CPU of all processes of the server, "
        "without the upstream and the client. Sluice and ContextForge authenticate; Sluice also records each call "
        "twice, durably, before it leaves and before it is answered; the forwarder checks and records nothing."
        f"{left_out}",
    )


async def measured(cases: dict[str, Case], sizes: Sizes) -> dict[str, list[float]]:
    """Return the medians over interleaved rounds of requests per CPU second: calls, lists."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in cases}
    for server, *both in cases.values():
        for data in both:
            await drive(server, [data] * max(sizes.calls // 50, 16), CLIENTS)
    for _ in range(sizes.rounds):
        for name, (server, *both) in cases.items():
            for values, data in zip(found[name], both, strict=True):
                count = max(sizes.calls // 20, 16) if "rival" in name else sizes.calls
                before = server.cpu_s()
                await drive(server, [data] * count, CLIENTS)
                # A smoke run may be shorter than the clock's tick.
                values.append(count / max(server.cpu_s() - before, 0.01))
    return {name: [statistics.median(values) for values in both] for name, both in found.items()}


def ours(stack: ExitStack, upstream: str, folder: Path) -> Iterator[tuple[str, Case]]:
    """Yield both revisions over the service."""
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"bench": {"url": upstream}}}))
    server = stack.enter_context(sluice(folder, SLUICE_UPSTREAMS__CONFIG=str(config)))
    session = asyncio.run(prepared(server))
    yield "Sluice, 2026-07-28", (server, *(modern(server, *one) for one in both("bench__echo")))
    handshake = {"MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": session}
    yield "Sluice, 2025-11-25", (server, *plain(server, "bench__echo", handshake))


async def prepared(server: Measured) -> str:
    """Lift the limits of the bench's tenant and return a session."""
    await lift_limits(server)
    return await open_session(server)


def contextforge(stack: ExitStack, upstream: str, folder: Path) -> Iterator[tuple[str, Case]]:
    """Yield ContextForge, where it is installed: its own credentials, its rate limit and admin pages off."""
    python = ENVIRONMENTS / "contextforge" / "bin" / "python"
    if not python.exists():
        return
    port, secret, word = free_port(), secrets.token_urlsafe(40), secrets.token_urlsafe(24) + "aA1!"
    environment = {
        "DATABASE_URL": f"sqlite:///{folder}/contextforge.db",
        "JWT_SECRET_KEY": secret,
        "AUTH_ENCRYPTION_SECRET": secret,
        "PLATFORM_ADMIN_EMAIL": "admin@example.com",
        **dict.fromkeys(("PLATFORM_ADMIN_PASSWORD", "BASIC_AUTH_PASSWORD", "DEFAULT_USER_PASSWORD"), word),
        "ENVIRONMENT": "development",
        "REQUIRE_USER_IN_DB": "false",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        **dict.fromkeys(
            ("RATE_LIMITING_ENABLED", "MCPGATEWAY_UI_ENABLED", "PLUGINS_ENABLED", "OBSERVABILITY_ENABLED"),
            "false",
        ),
        **dict.fromkeys(
            ("MCPGATEWAY_CATALOG_ENABLED", "LLMCHAT_ENABLED", "OTEL_ENABLE_OBSERVABILITY"), "false"
        ),
        "STRUCTURED_LOGGING_DATABASE_ENABLED": "false",
    }
    serve = ["-m", "uvicorn", "mcpgateway.main:app", "--host", "127.0.0.1", "--port", str(port)]
    serve += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error"]
    token = [python, "-m", "mcpgateway.utils.create_jwt_token", "--username", "admin@example.com"]
    token += ["--exp", "600", "--secret", secret]
    made = subprocess.run(token, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    key = made.stdout.strip().splitlines()[-1]
    server = stack.enter_context(started(serve, port, "/health", environment, key, python))
    body = {"name": "bench", "url": upstream, "transport": "STREAMABLEHTTP"}
    asyncio.run(exchange(server, request(server, "/gateways", body)))
    yield "rival ContextForge 1.0.7", (server, *plain(server, "bench-echo", path="/mcp/"))


def fastmcp(stack: ExitStack, upstream: str, _folder: Path) -> Iterator[tuple[str, Case]]:
    """Yield FastMCP's proxy, where it is installed: it neither authenticates nor records."""
    python = ENVIRONMENTS / "fastmcp" / "bin" / "python"
    if not python.exists():
        return
    port = free_port()
    script = str(Path(__file__).parents[1] / "rivals" / "fastmcp_proxy.py")
    server = stack.enter_context(started([script, str(port), upstream], port, "/", {}, "", python))
    yield "rival FastMCP 4.1 proxy", (server, *plain(server, "echo"))


def forwarder(stack: ExitStack, upstream: str, _folder: Path) -> Iterator[tuple[str, Case]]:
    """Yield the bare forwarder."""
    port = free_port()
    command = ["-m", "tests.benchmarks.speed.forwarder", str(port), upstream]
    server = stack.enter_context(started(command, port, "/mcp", {}, ""))
    yield "bare pooled forwarder", (server, *plain(server, "echo"))


Start = Callable[[ExitStack, str, Path], Iterator[tuple[str, Case]]]
STARTS: tuple[Start, ...] = (ours, contextforge, fastmcp, forwarder)
_ALL = 5


@contextmanager
def echo() -> Iterator[Measured]:
    """Run the upstream."""
    port = free_port()
    with started(["-m", "tests.benchmarks.speed.echo", str(port)], port, "/", {}, "") as server:
        yield server


def both(tool: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the two requests: a call of ``tool`` and the list."""
    return [("tools/call", {"name": tool, "arguments": {"text": TEXT}}), ("tools/list", {})]


def plain(
    server: Measured, tool: str, headers: dict[str, str] | None = None, path: str = "/mcp"
) -> Iterator[bytes]:
    """Yield the two requests of the revisions with a handshake; without a session where ``headers`` name none."""
    for method, params in both(tool):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        yield request(server, path, body, headers or {"MCP-Protocol-Version": STATELESS})


def modern(
    server: Measured, method: str, params: dict[str, Any], meta: dict[str, Any] | None = None
) -> bytes:
    """Return a request of the revision without a handshake."""
    given = {**params, "_meta": {**ENVELOPE, **(meta or {})}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    return request(server, "/mcp", body, headers)
