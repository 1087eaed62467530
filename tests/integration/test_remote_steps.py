"""Middlewares of other servers as steps of pipelines, and pipelines as steps of passages."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from app.core.access import Role
from app.core.content.handles import Handle
from app.core.contracts.pipelines import Pipeline
from app.core.contracts.policy import ToolHook
from app.core.errors import InvalidArgumentsError, ServiceError, UpstreamUnavailableError
from app.services.access.policies import argument_check
from app.services.forward.tool_hooks import HookedCall, HookScope
from app.services.invoke.invoke import InvokeService
from app.services.invoke.pipelines import PipelineService
from tests.integration.forwarding_setup import Desk, desk_on
from tests.integration.test_remote_middlewares import Answering, remotes_of

SSN = "123-45-6789"
PLAIN: dict[str, Any] = {"type": "object"}


@pytest.fixture
async def desk(database: Any, tenant: str) -> AsyncIterator[Desk]:
    async with desk_on(database, tenant) as opened:
        yield opened


def service_of(desk: Desk, server: Answering) -> InvokeService:
    invoke = desk.forwarding.invoke
    server.definition = {"name": "grade", "description": "Grades", "inputSchema": PLAIN}
    installed = invoke.registry.middlewares
    pipelines = PipelineService(
        *(invoke.policies.database, invoke.audit, installed, argument_check(invoke.registry))
    )
    return replace(invoke, pipelines=pipelines, remotes=remotes_of(server))


async def store(desk: Desk, service: InvokeService, *steps: Any, name: str = "cleaned") -> None:
    asked = [one if isinstance(one, dict) else {"name": one} for one in steps]
    pipeline = Pipeline.model_validate({"name": name, "steps": asked})
    assert service.pipelines is not None
    await service.pipelines.put(desk.caller(Role.OPERATOR), pipeline)


async def run(desk: Desk, service: InvokeService, text: str, **arguments: Any) -> Any:
    asked = desk.asked()
    return await service.invoke(asked.caller, "cleaned", arguments, [text], asked.request)


async def test_what_a_remote_step_answers_is_redacted_whole(desk: Desk) -> None:
    server = Answering({"content": [f"[SSN_1] of Jane Smith, and {SSN}"], "metadata": {"version": 9}})
    service = service_of(desk, server)
    await store(desk, service, "pii_redaction", "acme__grade")
    made = await run(desk, service, f"I have {SSN}")
    assert server.asked[0]["context"] == ["I have [SSN_1]"], "no original leaves"
    assert made.content == ["[SSN_1] of [PERSON_1], and [SSN_1]"]
    assert made.metadata["version"] == 1, "a server says nothing about our pipeline"
    [event] = await desk.events("middleware.invoke")
    assert (event.middleware, event.details["step_2"], event.details["step_2_remote"]) == (
        *("cleaned", "acme__grade"),
        "acme",
    )


async def test_arguments_of_a_remote_step_are_shown_and_sent(desk: Desk) -> None:
    server = Answering({"content": ["ok"]})
    service = service_of(desk, server)
    await store(desk, service, "acme__grade")
    await service.list(desk.caller())
    listed = {one.name: one for one in await service.list(desk.caller())}
    assert listed["cleaned"].input_schema["properties"]["acme__grade"] == PLAIN | {"properties": {}}
    await run(desk, service, "x", acme__grade={"level": 3})
    assert server.asked[0]["arguments"] == {"level": 3}


async def test_a_server_that_is_away_fails_its_step_and_no_other(desk: Desk) -> None:
    service = service_of(desk, Answering(UpstreamUnavailableError("Gone.")))
    for name in ("acme__grade", "gone__grade"):
        await store(desk, service, {"name": name, "on_error": "skip"}, "pii_redaction")
        made = await run(desk, service, SSN)
        assert made.content == ["[SSN_1]"]
        assert made.metadata["steps"][0]["error"] == "upstream_unavailable"
        await store(desk, service, name, "pii_redaction")
        with pytest.raises(UpstreamUnavailableError) as caught:
            await run(desk, service, SSN)
        assert caught.value.details["step"] == name


@pytest.mark.parametrize(
    ("name", "steps", "pointer"),
    [
        ("cleaned", ["pii_restoration", "acme__grade"], "/steps/1/name"),
        ("acme__grade", ["timestamp_injector"], "/name"),
        ("cleaned", ["cleaned"], "/steps/0/name"),
    ],
)
async def test_what_must_not_be_stored_is_refused(
    desk: Desk, name: str, steps: list[str], pointer: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        await store(desk, service_of(desk, Answering()), *steps, name=name)
    assert caught.value.details["pointer"] == pointer


def crossing(desk: Desk, service: InvokeService, *results: Any, scope: HookScope | None = None) -> HookedCall:
    asked, passage = desk.asked(), ToolHook.model_validate({"results": list(results)})
    return HookedCall(service, passage, asked.caller, asked.request, 10.0, scope or HookScope())


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


async def test_a_passage_runs_a_pipeline_in_the_scope_of_its_call(desk: Desk) -> None:
    server = Answering({"content": ["unused"]})
    service = service_of(desk, server)
    await store(desk, service, "pii_redaction", "secret_redaction")
    await desk.allow(passages=[{"names": ["*"], "results": [{"name": "cleaned"}]}])
    begun = crossing(desk, service, {"name": "cleaned"})
    made = await begun.result("tool", said(f"{SSN} here"))
    assert made["content"][0]["text"] == "[SSN_1] here"
    assert begun.scope.name == made["_meta"]["dev.sluice/scope"]
    given = crossing(
        desk,
        service,
        {"name": "cleaned"},
        {"name": "pii_redaction"},
        scope=HookScope("mine", from_caller=True),
    )
    made = await given.result("tool", said(f"{SSN} here"))
    assert made["content"][0]["text"] == "[SSN_1] here", (
        "the second redaction leaves the handles of the first"
    )
    twice = crossing(desk, service, {"name": "pii_redaction"}, {"name": "cleaned"})
    made = await twice.result("tool", said(f"{SSN} here"))
    assert made["content"][0]["text"] == "[SSN_1] here"
    [*events] = await desk.events("passage.invoke")
    assert {"cleaned", "pii_redaction"} == {one.middleware for one in events}


async def test_a_pipeline_that_names_a_scope_keeps_it_in_a_passage(desk: Desk) -> None:
    service = service_of(desk, Answering({"content": ["unused"]}))
    await store(desk, service, {"name": "pii_redaction", "arguments": {"scope": "own"}}, "secret_redaction")
    called = crossing(desk, service, {"name": "cleaned"}, scope=HookScope("mine", from_caller=True))
    made = await called.result("tool", said(f"{SSN} here"))
    assert made["content"][0]["text"] == "[SSN_1] here"
    reader, handle = desk.caller(Role.INVOKER, Role.RESTORER), Handle("SSN", 1)
    originals = [await service.vault.read(reader, scope, [handle]) for scope in ("own", "mine")]
    assert [{str(key): value.text for key, value in found.items()} for found in originals] == [
        {"[SSN_1]": SSN},
        {},
    ]


async def test_a_passage_that_names_nothing_that_runs_lets_nothing_pass(desk: Desk) -> None:
    service = service_of(desk, Answering())
    for name in ("no_such", "gone__grade"):
        with pytest.raises(ServiceError):
            await crossing(desk, service, {"name": name}).result("tool", said("x"))
    with pytest.raises(InvalidArgumentsError) as caught:
        await desk.allow(passages=[{"names": ["*"], "results": [{"name": "cleaned"}]}])
    assert caught.value.details["pointer"] == "/passages/0/results/0/name"
