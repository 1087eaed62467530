"""REST and the command line take the same filters of the audit log, and pass each one on."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.main import get_command
from typer.testing import CliRunner

from app.api.audit.audit import FiltersDep, router
from app.cli import host
from app.cli.audit.audit import commands
from app.services.audit.audit import AuditQuery

VALUES = {
    "since": "2026-11-20T00:00:00+00:00",
    "until": "2026-11-21T00:00:00+00:00",
    "actor": "0123abcd",
    "user": "grace",
    "on_behalf_of": "cd" * 32,
    "middleware": "timestamp_injector",
    "action": "middleware.invoke",
    "outcome": "refused",
    "scope": "case-7",
    "scope_ref": "ef" * 32,
    "request_id": "r-1",
    "client_request_id": "c-1",
}
ASKED = AuditQuery(
    **{**VALUES, "since": datetime(2026, 11, 20, tzinfo=UTC), "until": datetime(2026, 11, 21, tzinfo=UTC)}
)
OTHERS = {"limit", "cursor", "format"}


def parameters(path):
    app = FastAPI()
    app.include_router(router)
    (operation,) = [routes for name, routes in app.openapi()["paths"].items() if name.endswith(path)]
    return {each["name"]: each["description"] for each in operation["get"]["parameters"]}


def options(name):
    command = get_command(commands).commands[name]
    return {each.name: each.help for each in command.params}


@pytest.mark.parametrize(("path", "command"), [("/events", "query"), ("/export", "export")])
def test_both_doors_describe_the_same_filters(path, command):
    rest = {name: text for name, text in parameters(path).items() if name in VALUES}
    cli = {name: text for name, text in options(command).items() if name in VALUES}
    assert rest == cli
    assert set(rest) == set(VALUES) == set(parameters(path)) - OTHERS - {"authorization", "x-api-key"}


@pytest.mark.parametrize("command", ["query", "export"])
def test_the_command_line_passes_every_filter_on(monkeypatch, command):
    asked = []

    async def answer(_caller, filters, *_, **__):
        asked.append(filters)
        raise SystemExit(0)

    def on_host(work, **_):
        import asyncio

        audit = SimpleNamespace(query=answer, export=answer)
        return asyncio.run(work(SimpleNamespace(audit=audit)))

    monkeypatch.setattr(host, "on_host", on_host)
    arguments = [part for name, value in VALUES.items() for part in (f"--{name.replace('_', '-')}", value)]
    CliRunner().invoke(commands, [command, *arguments])
    CliRunner().invoke(commands, [command])
    assert asked == [ASKED, AuditQuery()]


def test_rest_passes_every_filter_on():
    asked = []
    app = FastAPI()

    @app.get("/")
    def receive(filters: FiltersDep) -> None:
        asked.append(filters)

    client = TestClient(app)
    assert client.get("/", params=VALUES).status_code == 200
    assert client.get("/").status_code == 200
    assert client.get("/", params={"outcome": "unknown"}).status_code == 422
    assert asked == [ASKED, AuditQuery()]
