"""A surface whose tenants have one more middleware, and the shortest way to store and run pipelines there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest

import app.middlewares
from app.core.access import Role
from app.core.content.context import Context
from app.core.contracts.engines import EngineReport
from app.core.contracts.middleware import Arguments, Middleware, Outcome
from app.core.contracts.registry import Registry
from app.core.errors import BlockedByPolicyError, UpstreamUnavailableError
from tests.fakes import engines
from tests.integration.rest_app import Rest, open_rest

PATH = "/api/v1/pipelines"


class TellArguments(Arguments):
    """What is put in front; ``fail`` is how the step fails."""

    text: str = "Found: John Doe and Jane Smith say [PERSON_1].\n\n"
    fail: str = ""


class Tell(Middleware[TellArguments]):
    """Puts a text in front, as retrieval does, or fails."""

    name = "tell"
    title = "Tell"
    description = "Puts a text in front"
    phase = "outbound"
    arguments = TellArguments
    seen: ClassVar[list[Any]] = []

    async def apply(self, context: Context, arguments: TellArguments) -> Outcome:
        self.seen.append(context.items)
        if arguments.fail == "hang":
            await asyncio.Event().wait()
        if arguments.fail == "crash":
            raise RuntimeError(f"about {context.items}")
        if arguments.fail == "down":
            raise UpstreamUnavailableError("The retriever does not answer.")
        if arguments.fail == "blocked":
            raise BlockedByPolicyError("No.")
        metadata = {"sources": ["John Doe's file"], "quoted": "[PERSON_1]"}
        return Outcome(
            context.prefixed(arguments.text), metadata, engine=EngineReport("told", "1", degraded=True)
        )


class Rewrite(Middleware[Arguments]):
    """Answers with a text of its own, as a middleware that runs elsewhere does."""

    name = "rewrite"
    title = "Rewrite"
    description = "Answers with a text of its own"
    phase = "outbound"
    arguments = Arguments

    async def apply(self, context: Context, arguments: Arguments) -> Outcome:
        return Outcome(Context.parse([f"{item} and José" for item in context.items]))


@asynccontextmanager
async def open_pipelines(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    """Return the surface with the middlewares above beside the installed ones."""
    discovered = Registry.discover(app.middlewares, engines())
    more = Registry({**discovered.middlewares, "tell": Tell(engines()), "rewrite": Rewrite(engines())})
    monkeypatch.setattr(Registry, "discover", lambda *_: more)
    Tell.seen.clear()
    async with open_rest(database_url) as opened:
        yield opened


async def put(
    rest: Rest, *steps: Any, name: str = "to_model", code: int = 200, **more: Any
) -> dict[str, Any]:
    body = {"name": name, "steps": [one if isinstance(one, dict) else {"name": one} for one in steps], **more}
    answer = await rest.call("PUT", f"{PATH}/{name}", body, roles=[Role.OPERATOR])
    assert answer.status_code == code, answer.text
    return dict(answer.json())


async def events(rest: Rest, action: str = "middleware.invoke") -> list[dict[str, Any]]:
    answer = await rest.call("GET", f"/api/v1/audit/events?action={action}", roles=["auditor"])
    return list(answer.json()["items"])


async def run(rest: Rest, context: Any, arguments: Any = None, *roles: Role) -> dict[str, Any]:
    answer = await rest.invoke("to_model", context, arguments, roles=roles or [Role.INVOKER])
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
