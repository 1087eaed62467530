"""The interceptor door on the real service: golden fixtures, descriptors, failures, its own endpoint."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.catalog.interceptors import EVENTS
from app.core.content.context import Context
from app.core.contracts.middleware import Arguments, Middleware, Outcome
from app.core.contracts.pipelines import Pipeline
from app.core.contracts.policy import Policy
from app.services.access.access import HOST
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, REVISIONS, Wire, client
from tests.protocol.requirements import covers

FIXTURES = sorted((Path(__file__).parent / "interceptors").glob("*.json"))
OPERATOR = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.OPERATOR}))
EXTENSION = "io.modelcontextprotocol/interceptors"
PIPELINE = {
    "name": "to_model",
    "description": "Redacts, then tells the time.",
    "steps": [{"name": "pii_redaction"}, {"name": "timestamp_injector", "on_error": "skip"}],
}


class Slow(Middleware[Arguments]):
    """Never ends."""

    name, title, description, phase, arguments = "slow", "Slow", "Never ends", "outbound", Arguments

    async def apply(self, context: Context, arguments: Arguments) -> Outcome:
        await asyncio.Event().wait()
        return Outcome(context)


class Crashes(Slow):
    """Always fails."""

    name = "crashes"

    async def apply(self, context: Context, arguments: Arguments) -> Outcome:
        raise RuntimeError(f"about {context.items}")


@dataclass
class Served:
    url: str
    app: FastAPI

    async def policy(self, **members: Any) -> None:
        await self.app.state.services.policies.put(OPERATOR, None, Policy(**members))

    def client(self, revision: str, path: str = "", key: str | None = None) -> Any:
        return client(self.url + path, revision, key or str(KEY))


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, app):
        app.state.services.registry.middlewares.update(slow=Slow(None), crashes=Crashes(None))
        yield Served(url, app)


async def invoke(
    wire: Wire, params: dict[str, Any], method: str = "interceptor/invoke", **options: Any
) -> Any:
    body = wire.body(method, params, options.get("meta"))
    return await wire.post(body, wire.headers(method) | ({"mcp-name": params["name"]} if wire.modern else {}))


def without_volatile(result: dict[str, Any]) -> dict[str, Any]:
    return {
        key: one for key, one in result.items() if key not in {"durationMs", "info", "resultType", "_meta"}
    }


async def listed(wire: Wire, **params: Any) -> dict[str, dict[str, Any]]:
    reply = await wire.call("interceptors/list", **params)
    return {one["name"]: one for one in reply.result["interceptors"]}


@covers("IC-VALIDATION", "IC-NEGATIVE", "IC-MUTATION", "IC-FORM", "IC-UNKNOWN")
@covers("IC-HOOK", "IC-TIMEOUT", "IC-FAILURE", "IC-CONFIG-SCHEMA")
async def test_every_golden_fixture_holds_on_both_revisions(tmp_path: Path) -> None:
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, app):
        app.state.services.registry.middlewares.update(slow=Slow(None), crashes=Crashes(None))
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                for path in FIXTURES:
                    fixture = json.loads(path.read_text())
                    reply = await invoke(wire, fixture["params"], meta=fixture.get("meta"))
                    if "error" in fixture:
                        check_error(reply.error, fixture["error"], path.stem)
                        continue
                    result = reply.result
                    assert without_volatile(result) == fixture["result"], path.stem
                    assert result["durationMs"] >= 0 and isinstance(result["info"], dict)
                    assert fixture.get("info", {}).items() <= result["info"].items(), path.stem
                metrics = (await wire.http.get(wire.url.removesuffix("/mcp") + "/metrics")).text
                assert 'sluice_errors_total{code="internal_error"}' in metrics, "failures are counted"


def check_error(error: dict[str, Any], expected: dict[str, Any], name: str) -> None:
    assert error["code"] == expected["code"], (name, error)
    assert expected.get("message", error["message"]) == error["message"], name
    assert expected["data"].items() <= error["data"].items(), (name, error)
    assert "about" not in json.dumps(error), "what a fault says of content stays inside"


def test_there_is_a_fixture_for_each_type_phase_and_event() -> None:
    params = [json.loads(path.read_text()) for path in FIXTURES]
    seen = {(one["params"]["phase"], one.get("result", {}).get("type")) for one in params}
    assert seen >= {(phase, kind) for phase in ("request", "response") for kind in ("mutation", "validation")}
    assert {one["params"]["event"] for one in params if "result" in one} == set(EVENTS)


async def test_a_list_of_tools_is_chosen_for_what_its_own_request_says(served: Served) -> None:
    kinds = {"weather": "The weather forecast of a city", "mail": "Send an e-mail to somebody"}
    tools = [{"name": name, "description": one, "inputSchema": {}} for name, one in kinds.items()]
    asked = {"dev.sluice/toolFilter": {"query": "Will it rain in Paris tomorrow?", "maxTools": 1}}
    params = {"name": "tool_filter", "event": "tools/list", "phase": "response"}
    for revision in REVISIONS:
        async with served.client(revision) as wire:
            inside = await invoke(wire, {**params, "payload": {"tools": tools, "_meta": asked}})
            beside = await invoke(wire, {**params, "payload": {"result": {"tools": tools}}}, meta=asked)
            nothing = await invoke(wire, {**params, "payload": {"tools": tools}})
            wrong = await invoke(
                wire, {**params, "payload": {"tools": tools}}, meta={"dev.sluice/toolFilter": {"query": 1}}
            )
        assert [one["name"] for one in inside.result["payload"]["tools"]] == ["weather"]
        assert inside.result["payload"]["_meta"] == asked
        assert beside.result["payload"] == {"result": {"tools": [tools[0]]}}
        assert (nothing.result["modified"], nothing.result["payload"]) == (False, {"tools": tools})
        assert wrong.error["data"]["pointer"] == "/_meta/dev.sluice~1toolFilter/query"


@covers("IC-CAPABILITY")
async def test_the_extension_is_declared_with_its_events(served: Served) -> None:
    for revision in REVISIONS:
        async with served.client(revision) as wire:
            reply = await wire.call("server/discover") if wire.modern else await wire.open()
            shown = reply.result["capabilities"]
            assert shown["extensions"][EXTENSION] == {"supportedEvents": list(EVENTS)}
            assert "" not in shown and "contextMiddleware" in shown


@covers("IC-LIST", "IC-LIST-EVENT", "IC-NAMES", "IC-CONFIG-SCHEMA")
async def test_descriptors_say_what_differs_from_the_defaults(served: Served) -> None:
    for revision in REVISIONS:
        async with served.client(revision) as wire:
            reply = await wire.call("interceptors/list")
            names = [one["name"] for one in reply.result["interceptors"]]
            assert names == sorted(set(names))
            found = await listed(wire)
            moderation = found["content_moderation"]
            assert list(moderation) == [
                *("name", "version", "description", "type", "hooks", "compat", "configSchema")
            ]
            assert moderation["type"] == "validation"
            assert moderation["hooks"] == [
                {"events": [event for event in EVENTS if event != "tools/list"], "phase": "request"},
                {"events": ["tools/call", "resources/read", "prompts/get"], "phase": "response"},
            ]
            assert "action" not in moderation["configSchema"]["properties"]
            assert found["pii_redaction"]["priorityHint"] == -100_000
            assert {
                one["hooks"][0]["phase"]
                for one in (found["pii_restoration"], found["hallucination_detection"])
            } == {"response"}
            for one in found.values():
                assert set(one["configSchema"]) <= {"type", "properties", "required", "additionalProperties"}
                assert "$ref" not in json.dumps(one["configSchema"])
            hooking = await listed(wire, event="tools/list")
            assert set(hooking) == {"tool_filter", "audit_logging"}
            assert await listed(wire, event="custom/nothing") == {}
            wrong = await wire.call("interceptors/list", event="*")
            assert (wrong.error["code"], wrong.error["data"]["pointer"]) == (-32602, "/event")


@covers("IC-POLICY")
async def test_a_policy_recommends_mode_failure_rule_and_order(served: Served) -> None:
    await served.policy(
        interceptors={
            "content_moderation": {"mode": "audit", "fail_open": True, "priority_hint": 7},
            "pii_redaction": {
                "mode": "active",
                "fail_open": False,
                "priority_hint": {"request": -5, "response": 5},
            },
            "timestamp_injector": {"priority_hint": 0},
        },
        allowed_middlewares=[
            "content_moderation",
            "pii_redaction",
            "timestamp_injector",
            "hallucination_detection",
        ],
        default_arguments={"hallucination_detection": {"action": "fix"}},
    )
    async with served.client(MODERN) as wire:
        found = await listed(wire)
        assert set(found) == {
            "content_moderation",
            "pii_redaction",
            "timestamp_injector",
            "hallucination_detection",
        }
        moderation, redaction = found["content_moderation"], found["pii_redaction"]
        assert (moderation["mode"], moderation["failOpen"]) == ("audit", True)
        assert "priorityHint" not in moderation, "validations have no order"
        assert redaction["priorityHint"] == {"request": -5, "response": 5}
        assert (
            not {"mode", "failOpen"} & redaction.keys() and "priorityHint" not in found["timestamp_injector"]
        )
        assert found["hallucination_detection"]["type"] == "mutation"
        hidden = await invoke(
            wire, {"name": "tool_filter", "event": "tools/list", "phase": "request", "payload": {}}
        )
        assert hidden.error["code"] == -32602, "what the policy does not allow is not there"
        # Whoever invokes routes by mode; the verdict is the same.
        params = {"name": "content_moderation", "event": "context/transform", "phase": "request"}
        config = {"policies": ["x"], "customPolicies": [{"name": "x", "terms": ["bluebird"]}]}
        denied = await invoke(wire, {**params, "payload": {"context": ["bluebird"]}, "config": config})
        assert denied.result["valid"] is False
        # The members of the proposal's ValidationResult, and of its messages, and no others.
        members = {"interceptor", "type", "phase", "durationMs", "info", "valid", "severity", "messages"}
        assert set(denied.result) - {"_meta", "resultType"} == members, "beside those of the revision"
        assert all(set(message) == {"path", "message", "severity"} for message in denied.result["messages"])
        assert moderation["configSchema"]["properties"]["policies"]["type"] == "array"
        assert "anyOf" not in moderation["configSchema"]["properties"]["policies"]


@covers("IC-PIPELINE", "IC-FORM")
async def test_pipelines_are_interceptors_and_middlewares_on_both_revisions(tmp_path: Path) -> None:
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, app):
        await app.state.services.pipelines.put(OPERATOR, Pipeline.model_validate(PIPELINE))
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                descriptor = (await listed(wire))["to_model"]
                assert (descriptor["type"], descriptor["version"]) == ("mutation", "1.0.0")
                assert [hook["phase"] for hook in descriptor["hooks"]] == ["request"]
                payload = {"model": "m", "messages": [{"role": "user", "content": "I am John Doe"}]}
                params = {
                    "name": "to_model",
                    "event": "llm/completion",
                    "phase": "request",
                    "payload": payload,
                }
                result = (await invoke(wire, params, "interceptors/invoke")).result
                text = result["payload"]["messages"][0]["content"]
                assert text.startswith("[Current time: ") and text.endswith("\n\nI am [PERSON_1]")
                assert result["info"]["pipeline"] == "to_model"
                names = {one["name"] for one in (await wire.call("middleware/list")).result["middleware"]}
                assert "to_model" in names
                again = await wire.invoke("I am John Doe", name="to_model", arguments={"scope": revision})
                assert again.result["content"][0].endswith("I am [PERSON_1]")
                assert again.result["metadata"]["scope"] == revision


@covers("IC-NEGATIVE")
async def test_a_policy_that_blocks_is_a_verdict_here(served: Served) -> None:
    custom = [{"name": "x", "terms": ["bluebird"]}]
    fixed = {"action": "block", "policies": ["x"], "customPolicies": custom}
    await served.policy(fixed_arguments={"content_moderation": fixed})
    params = {"name": "content_moderation", "event": "context/transform", "phase": "request"}
    async with served.client(MODERN) as wire:
        denied = (await invoke(wire, {**params, "payload": {"context": ["bluebird"]}})).result
        passed = (await invoke(wire, {**params, "payload": {"context": ["sparrow"]}})).result
    assert (denied["valid"], denied["severity"], denied["info"]["flags"]) == (False, "error", ["x"])
    assert passed["valid"] is True


@covers("IC-ALONE")
async def test_alone_there_is_nothing_but_interceptors(served: Served) -> None:
    for revision in REVISIONS:
        async with served.client(revision, "/interceptors") as wire:
            reply = await wire.call("server/discover") if wire.modern else await wire.open()
            shown = reply.result["capabilities"]
            assert set(shown) == {"extensions"} and set(shown["extensions"]) == {EXTENSION}
            assert "timestamp_injector" in await listed(wire)
            params = {"name": "audit_logging", "event": "tools/list", "phase": "request", "payload": {}}
            assert (await invoke(wire, params)).result["valid"] is True
            for method in ("middleware/list", "tools/list", "groups/list"):
                refused = await wire.call(method)
                assert refused.error["code"] == -32601, method
                assert refused.status == (404 if wire.modern else 200)
            if not wire.modern:
                assert (await wire.call("ping")).result == {}
        async with served.client(revision) as wire:
            assert "error" not in (await wire.call("middleware/list")).message, "the control: /mcp has them"


async def test_an_invocation_is_on_record_with_its_event(served: Served) -> None:
    params = {"name": "timestamp_injector", "event": "context/transform", "phase": "request"}
    async with served.client(HANDSHAKE) as wire:
        await invoke(wire, {**params, "payload": {"context": ["canary-4711"]}})
        metrics = (await wire.http.get(wire.url.partition("/mcp")[0] + "/metrics")).text
        assert 'sluice_invocations_total{middleware="timestamp_injector",outcome="ok"}' in metrics
        made = await served.app.state.services.access.create_key(HOST, [Role.AUDITOR], tenant=DEFAULT_TENANT)
        refused = await wire.http.post(
            *(wire.url,),
            json=wire.body("interceptors/list", {}),
            headers={"authorization": f"Bearer {made.key}", **wire.headers("interceptors/list")},
        )
        assert refused.status_code in {403, 404}
    events = await served.app.state.services.audit.query(
        Caller(DEFAULT_TENANT, "0", frozenset({Role.AUDITOR})), query_of("interceptor.invoke")
    )
    (event,) = events.items
    assert (event.middleware, event.outcome) == ("timestamp_injector", "ok")
    assert dict(event.details) | {"event": "context/transform", "phase": "request"} == dict(event.details)
    assert "canary" not in str(event)


def query_of(action: str) -> Any:
    from app.services.audit.audit import AuditQuery

    return AuditQuery(action=action)


def own_members(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the members that every result of the newer revision has."""
    return {key: value for key, value in result.items() if key not in {"resultType", "_meta"}}


MEMBERS_OF_A_VALIDATION = {
    "type": "object",
    "required": ["interceptor", "type", "phase", "valid"],
    "additionalProperties": False,
    "properties": {
        "interceptor": {"type": "string"},
        "type": {"const": "validation"},
        "phase": {"enum": ["request", "response"]},
        "durationMs": {"type": "number", "minimum": 0},
        "info": {"type": "object"},
        "valid": {"type": "boolean"},
        "severity": {"enum": ["info", "warn", "error"]},
        "messages": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "severity"],
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string"},
                    "message": {"type": "string"},
                    "severity": {"enum": ["info", "warn", "error"]},
                },
            },
        },
        "suggestions": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["path", "value"],
                "additionalProperties": False,
                "properties": {"path": {"type": "string"}, "value": {}},
            },
        },
    },
}
"""``ValidationResult`` of SEP-2624, without the signature, which the proposal reserves."""


@covers("IC-NEGATIVE")
async def test_a_validation_answers_exactly_the_members_of_the_proposal(served: Served) -> None:
    allowed = Draft202012Validator(MEMBERS_OF_A_VALIDATION)
    validations = [json.loads(path.read_text())["params"] for path in FIXTURES if "validation-" in path.name]
    severities = set()
    for revision in REVISIONS:
        async with served.client(revision) as wire:
            for params in validations:
                result = own_members((await invoke(wire, params)).result)
                assert [fault.message for fault in allowed.iter_errors(result)] == [], params["name"]
                severities.add(result["severity"])
    assert severities >= {"info", "error"}
    assert [*allowed.iter_errors({"interceptor": "a", "type": "validation", "phase": "request", "valid": 1})]


@covers("IC-NEGATIVE")
async def test_repairs_are_suggestions_at_the_places_that_the_messages_name(served: Served) -> None:
    evidence = ["Read https://docs.acme.dev/guide/installation first. The tower has 330 steps."]
    said = "Read https://docs.acme.dev/guide/instalation first."
    payloads = {
        "choices[0].message.content": {
            "choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]
        },
        "content": {"role": "assistant", "content": said},
        "output[0].content[0].text": {
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
            ]
        },
    }
    params = {"name": "hallucination_detection", "event": "llm/completion", "phase": "response"}
    config = {"evidence": evidence}
    for revision in REVISIONS:
        async with served.client(revision) as wire:
            for path, payload in payloads.items():
                result = own_members(
                    (await invoke(wire, {**params, "payload": payload, "config": config})).result
                )
                assert Draft202012Validator(MEMBERS_OF_A_VALIDATION).is_valid(result)
                assert "payload" not in result, "a validation changes nothing"
                suggested = {"path": path, "value": "https://docs.acme.dev/guide/installation"}
                assert suggested in result["suggestions"]
                assert path in {message.get("path") for message in result["messages"]}
            true = {"role": "assistant", "content": "Read https://docs.acme.dev/guide/installation first."}
            result = (await invoke(wire, {**params, "payload": true, "config": config})).result
            assert result["valid"] is True and "suggestions" not in result
