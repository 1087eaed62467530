"""The model sees handles, the tool sees the truth: arguments restored, results cleaned, nothing in between."""

import asyncio
import base64
from typing import Any

import pytest

from app.core.access import Role
from app.core.catalog.primitives import PrimitiveKind
from app.core.contracts.policy_steps import Step
from app.core.errors import (
    BlockedByPolicyError,
    DeadlineExceededError,
    InvalidArgumentsError,
    ServiceError,
)
from app.core.upstream import Hooks, UpstreamError
from app.services.forward.tool_hooks import HookScope
from tests.catalogs import primitive, tool
from tests.fakes import FakeDetector, engines
from tests.integration.forwarding_setup import Desk, desk_on

REDACTS = {"name": "pii_redaction"}
SSN = "123-45-6789"
PERSON = "Jane Smith"


@pytest.fixture
async def desk(database: Any, tenant: str) -> Any:
    async with desk_on(database, tenant) as opened:
        opened.offer(
            tool("crm", "find"),
            tool("crm", "count"),
            primitive(PrimitiveKind.PROMPT, "crm", "brief"),
            primitive(PrimitiveKind.RESOURCE, "crm", "crm://1"),
            primitive(PrimitiveKind.TEMPLATE, "crm", "crm://{id}"),
        )
        yield opened


def passage(**options: Any) -> dict[str, Any]:
    return {"names": ["crm__find"], "kinds": ["tool"], "results": [REDACTS], **options}


async def redact(desk: Desk, text: str, scope: str) -> Any:
    step = Step(name="pii_redaction", arguments={"scope": scope})
    asked = desk.asked()
    made = await desk.forwarding.invoke.run_tool_hook(
        asked.caller, step, [{"type": "text", "text": text}], asked.request, asked.request.deadline
    )
    return made.content[0]["text"]


def echoing(**more: Any) -> Any:
    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        said = str(params["arguments"])
        return {
            "content": [{"type": "text", "text": f"Found {said}"}],
            "structuredContent": {"found": params["arguments"], "deep": [{"who": PERSON}]},
            **more,
        }

    return answer


async def test_the_tool_sees_the_truth_and_the_model_handles(desk: Desk) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])
    server = desk.server("crm", answer=echoing())
    assert await redact(desk, f"{PERSON} has {SSN}", "s") == "[PERSON_1] has [SSN_1]"

    arguments = {"who": "[PERSON_1]", "url": "https://x/?q=[SSN_1]", "json": '{"a": "[PERSON_1]"}', "n": 5}
    made = await desk.call("crm__find", arguments, scope=HookScope("s", from_caller=True))

    seen = server.calls[0][1]["arguments"]
    assert seen == {"who": PERSON, "url": f"https://x/?q={SSN}", "json": f'{{"a": "{PERSON}"}}', "n": 5}
    assert PERSON not in str(made) and SSN not in str(made)
    assert made["structuredContent"]["found"]["who"] == "[PERSON_1]"
    assert made["structuredContent"]["deep"] == [{"who": "[PERSON_1]"}]
    assert "_meta" not in made


async def test_an_invoker_gets_this_by_the_policy_and_may_still_not_restore(desk: Desk) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])
    server = desk.server("crm", answer=echoing())
    await redact(desk, PERSON, "s")
    await desk.call(
        "crm__find",
        {"who": "[PERSON_1]"},
        caller=desk.caller(Role.INVOKER),
        scope=HookScope("s", from_caller=True),
    )

    assert server.calls[0][1]["arguments"] == {"who": PERSON}
    events = await desk.events("passage.invoke")
    assert [(event.middleware, event.outcome) for event in events[-2:]] == [
        ("pii_restoration", "ok"),
        ("pii_redaction", "ok"),
    ]
    assert {event.roles for event in events} == {("invoker",)}
    assert PERSON not in str(events)


async def test_what_the_tool_was_given_comes_back_as_a_handle_even_where_nobody_would_recognize_it(
    desk: Desk,
) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])

    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        who = params["arguments"]["who"]
        return {
            "content": [
                {"type": "text", "text": f"x{who.upper()}x"},
                {"type": "resource_link", "name": "n", "uri": f"https://x.example/{who}"},
            ],
            "structuredContent": {who: [who.lower()]},
        }

    desk.server("crm", answer=answer)
    await redact(desk, PERSON, "s")
    made = await desk.call(
        *("crm__find", {"who": "[PERSON_1]"}),
        caller=desk.caller(Role.INVOKER),
        scope=HookScope("s", from_caller=True),
    )

    assert PERSON.lower() not in str(made).lower()
    assert made["content"][0]["text"] == "x[PERSON_1]x"
    assert made["structuredContent"] == {"[PERSON_1]": ["[PERSON_1]"]}


async def test_an_error_of_the_server_shows_no_original_either(desk: Desk) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])

    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        raise UpstreamError(-32000, f"no {params['arguments']['who'].upper()}", {"q": params["arguments"]})

    desk.server("crm", answer=answer)
    await redact(desk, PERSON, "s")
    with pytest.raises(UpstreamError) as raised:
        await desk.call("crm__find", {"who": "[PERSON_1]"}, scope=HookScope("s", from_caller=True))
    assert raised.value.message == "no [PERSON_1]"
    assert PERSON not in str(raised.value.data)


async def test_a_tool_that_no_passage_names_gets_handles_and_its_result_stays_as_it_is(desk: Desk) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])
    server = desk.server("crm", answer=echoing())
    await redact(desk, PERSON, "s")
    made = await desk.call("crm__count", {"who": "[PERSON_1]"}, scope=HookScope("s", from_caller=True))

    assert server.calls[0][1]["arguments"] == {"who": "[PERSON_1]"}
    assert made["structuredContent"]["deep"] == [{"who": PERSON}]


async def test_handles_of_another_scope_and_no_scope_restore_nothing(desk: Desk) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])
    server = desk.server("crm", answer=echoing())
    await redact(desk, PERSON, "s")
    for scope in (HookScope("t", from_caller=True), HookScope()):
        await desk.call("crm__find", {"who": "[PERSON_1]"}, scope=scope)

    assert [call[1]["arguments"] for call in server.calls] == [{"who": "[PERSON_1]"}] * 2


async def test_a_scope_that_the_caller_did_not_name_is_named_in_the_result_and_serves_the_next_call(
    desk: Desk,
) -> None:
    await desk.allow(passages=[passage(restore_arguments=True)])
    server = desk.server("crm", answer=echoing(_meta={"vendor/x": 1}))
    made = await desk.call("crm__find", {"who": PERSON})
    scope = made["_meta"]["dev.sluice/scope"]
    assert made["_meta"] == {"vendor/x": 1, "dev.sluice/scope": scope}
    handle = made["structuredContent"]["found"]["who"]
    assert handle != PERSON

    await desk.call("crm__find", {"who": handle}, scope=HookScope(scope, from_caller=True))
    assert server.calls[1][1]["arguments"] == {"who": PERSON}


async def test_nothing_of_a_result_passes_unseen(desk: Desk) -> None:
    await desk.allow(passages=[passage()])

    async def answer(*_: Any) -> dict[str, Any]:
        embedded = {
            "uri": "crm://1",
            "mimeType": "text/plain",
            "blob": base64.b64encode(PERSON.encode()).decode(),
        }
        return {
            "content": [
                {
                    "type": "text",
                    "text": PERSON,
                    "_meta": {"a": PERSON},
                    "annotations": {"audience": ["user"]},
                },
                {"type": "resource", "resource": {**embedded, "_meta": {"b": PERSON}}, "vendor": PERSON},
                {
                    "type": "resource_link",
                    "uri": "crm://2",
                    "name": PERSON,
                    "title": PERSON,
                    "description": PERSON,
                },
                {"type": "unheard", "of": {"deep": [PERSON]}},
            ],
            "structuredContent": {"json": f'{{"who":"{PERSON}"}}'},
            "_meta": {"c": PERSON},
            "vendor": {"d": [PERSON]},
        }

    desk.server("crm", answer=answer)
    made = await desk.call("crm__find", scope=HookScope("s", from_caller=True))

    assert PERSON not in str(made)
    assert made["content"][0] == {
        "type": "text",
        "text": "[PERSON_1]",
        "_meta": {"a": "[PERSON_1]"},
        "annotations": {"audience": ["user"]},
    }
    inner = made["content"][1]["resource"]
    assert base64.b64decode(inner["blob"]).decode() == "[PERSON_1]"
    assert inner["_meta"] == {"b": "[PERSON_1]"}
    assert made["content"][2]["uri"] == "crm://2"
    assert made["vendor"] == {"d": ["[PERSON_1]"]}


async def test_a_result_without_anything_to_clean_comes_back_as_it_was(desk: Desk) -> None:
    await desk.allow(passages=[passage()])
    result = {
        "content": [
            {"type": "text", "text": "plain", "annotations": {"priority": 0.5}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": {"x": None}},
        ],
        "structuredContent": {"n": 10**30, "f": 1.0},
        "isError": True,
        "extra": [None],
    }

    async def answer(*_: Any) -> dict[str, Any]:
        return result

    desk.server("crm", answer=answer)
    assert await desk.call("crm__find", scope=HookScope("s", from_caller=True)) == result


async def test_prompts_and_resources_pass_too(desk: Desk) -> None:
    await desk.allow(passages=[{"kinds": ["prompt", "resource"], "results": [REDACTS]}])

    async def answer(method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        if method == "prompts/get":
            message = {"role": "user", "content": {"type": "text", "text": PERSON, "_meta": {"p": PERSON}}}
            return {
                "description": PERSON,
                "messages": [message, {"role": "assistant", "content": message["content"]}],
            }
        return {
            "contents": [
                {"uri": params["uri"], "mimeType": "text/plain", "text": PERSON, "_meta": {"q": SSN}}
            ]
        }

    desk.server("crm", answer=answer)
    scope = HookScope("s", from_caller=True)
    prompt = await desk.forwarding.get_prompt(desk.asked(params={"name": "crm__brief"}, scope=scope))
    resource = await desk.forwarding.read_resource(desk.asked(params={"uri": "crm://1"}, scope=scope))
    filled = await desk.forwarding.read_resource(desk.asked(params={"uri": "crm://9"}, scope=scope))

    content = {"type": "text", "text": "[PERSON_1]", "_meta": {"p": "[PERSON_1]"}}
    assert prompt == {
        "description": "[PERSON_1]",
        "messages": [{"role": "user", "content": content}, {"role": "assistant", "content": content}],
    }
    assert resource["contents"] == [
        {"uri": "crm://1", "mimeType": "text/plain", "text": "[PERSON_1]", "_meta": {"q": "[SSN_1]"}}
    ]
    assert filled["contents"][0]["text"] == "[PERSON_1]"


async def test_uris_are_redacted_unless_the_step_says_otherwise(desk: Desk) -> None:
    uri = f"https://x.example/{SSN}?who=1"

    async def answer(*_: Any) -> dict[str, Any]:
        link = {"type": "resource_link", "name": "n", "uri": uri}
        return {"content": [link], "structuredContent": {"plain": "https://x.example/7", "uri": uri}}

    desk.server("crm", answer=answer)
    await desk.allow(passages=[passage()])
    made = await desk.call("crm__find", {})
    await desk.allow(passages=[passage(results=[{"name": "pii_redaction", "arguments": {"uris": "report"}}])])
    kept = await desk.call("crm__find", {})

    assert SSN not in str(made)
    assert made["structuredContent"]["plain"] == "https://x.example/7"
    assert kept["content"][0]["uri"] == uri


async def test_what_a_server_says_of_its_failure_is_cleaned_too(desk: Desk) -> None:
    await desk.allow(passages=[passage()])

    async def answer(*_: Any) -> dict[str, Any]:
        raise UpstreamError(-32001, f"No {PERSON}", {"who": [PERSON]})

    desk.server("crm", answer=answer)
    with pytest.raises(UpstreamError) as failure:
        await desk.call("crm__find", scope=HookScope("s", from_caller=True))

    assert (failure.value.code, failure.value.message, failure.value.data) == (
        -32001,
        "No [PERSON_1]",
        {"who": ["[PERSON_1]"]},
    )
    assert failure.value.__context__ is None or PERSON not in str(failure.value.__context__)


async def test_texts_of_progress_and_logs_are_dropped_and_questions_cleaned(desk: Desk) -> None:
    await desk.allow(passages=[passage()])
    told: list[Any] = []
    asked: list[Any] = []

    async def notify(method: str, params: Any) -> None:
        told.append((method, dict(params)))

    async def ask(method: str, params: Any) -> dict[str, Any]:
        asked.append(params)
        return {"action": "accept"}

    async def answer(_method: str, _params: Any, hooks: Hooks) -> dict[str, Any]:
        assert hooks.notify is not None and hooks.ask is not None
        await hooks.notify("notifications/progress", {"progressToken": 1, "progress": 1, "message": PERSON})
        await hooks.notify("notifications/message", {"level": "info", "data": PERSON})
        await hooks.ask("elicitation/create", {"message": f"Are you {PERSON}?"})
        return {"content": []}

    desk.server("crm", answer=answer)
    await desk.call("crm__find", hooks=Hooks(notify=notify, ask=ask), scope=HookScope("s", from_caller=True))
    assert told == [("notifications/progress", {"progressToken": 1, "progress": 1})]
    assert asked == [{"message": "Are you [PERSON_1]?"}]

    told.clear()
    await desk.call("crm__count", hooks=Hooks(notify=notify, ask=ask))  # no passage: everything passes
    assert [method for method, _ in told] == ["notifications/progress", "notifications/message"]
    assert told[0][1]["message"] == PERSON


async def test_a_middleware_that_fails_or_blocks_withholds_the_result(desk: Desk) -> None:
    desk.server("crm", answer=echoing())
    blocks = {"name": "pii_redaction", "arguments": {"mode": "block"}}
    await desk.allow(passages=[passage(results=[blocks])])
    with pytest.raises(BlockedByPolicyError) as refusal:
        await desk.call("crm__find")
    assert PERSON not in str(refusal.value.details) + refusal.value.message

    events = await desk.events("tool.call")
    assert [(event.outcome, event.error_code) for event in events] == [
        ("sent", None),
        ("failed", "blocked_by_policy"),
    ]


class NeverEnding(FakeDetector):
    """A detector that hangs."""

    async def detect(self, texts: Any, options: Any, **_given: Any) -> Any:
        await asyncio.Event().wait()


async def test_middlewares_have_the_time_of_the_policy_however_long_the_call_may_take(desk: Desk) -> None:
    desk.server("crm", answer=echoing())
    await desk.allow(passages=[passage()], limits={"deadline_ms": 50})
    redaction: Any = desk.forwarding.invoke.registry.get("pii_redaction")
    redaction.engines = engines(NeverEnding())
    with pytest.raises(DeadlineExceededError):
        await desk.call("crm__find", left_s=3600.0)


async def test_a_result_that_cannot_be_read_is_withheld(desk: Desk) -> None:
    await desk.allow(passages=[passage()])

    async def answer(*_: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": {"no": "string"}}]}

    desk.server("crm", answer=answer)
    with pytest.raises(ServiceError):
        await desk.call("crm__find")


async def test_several_middlewares_run_in_order_and_what_they_add_stands_in_front(desk: Desk) -> None:
    await desk.allow(passages=[passage(results=[REDACTS, {"name": "timestamp_injector"}])])
    desk.server("crm", answer=echoing())
    made = await desk.call("crm__find", {"who": PERSON}, scope=HookScope("s", from_caller=True))

    assert made["content"][0]["text"].startswith("[Current time")
    assert made["content"][1]["text"].startswith("Found")
    assert PERSON not in str(made)


async def test_a_policy_with_an_unknown_middleware_or_argument_is_refused(desk: Desk) -> None:
    with pytest.raises(InvalidArgumentsError) as unknown:
        await desk.allow(passages=[passage(results=[REDACTS, {"name": "nothing"}])])
    with pytest.raises(InvalidArgumentsError) as wrong:
        await desk.allow(passages=[passage(results=[{"name": "pii_redaction", "arguments": {"modus": 1}}])])

    assert unknown.value.details["pointer"] == "/passages/0/results/1/name"
    assert wrong.value.details["pointer"] == "/passages/0/results/0/arguments/modus"
