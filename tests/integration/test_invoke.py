"""What the invoke service decides beyond the middleware: roles, escapes, kept content, records."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import app.middlewares
from app.core.access import Caller, Role
from app.core.contracts.engines import Detection, DetectionOptions
from app.core.contracts.registry import Registry
from app.core.errors import DeadlineExceededError
from app.core.request import RequestInfo
from app.services.access.access import HOST
from tests.fakes import FakeDetector, engines
from tests.integration.rest_app import Rest, open_rest

TEXT = "I am Jane Smith, 123-45-6789."


@pytest.fixture
async def rest(database_url: str) -> Any:
    async with open_rest(database_url) as opened:
        yield opened


async def events(rest: Rest) -> list[dict[str, Any]]:
    answer = await rest.call("GET", "/api/v1/audit/events?action=middleware.invoke", roles=["auditor"])
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def put_policy(rest: Rest, **policy: Any) -> None:
    answer = await rest.put_policy(policy, roles=["operator"])
    assert answer.status_code == 200, answer.text


async def test_redacting_does_not_entitle_to_restoring(rest: Rest) -> None:
    await rest.invoke("pii_redaction", [TEXT], {"scope": "s"}, roles=[Role.INVOKER])
    refused = await rest.invoke("pii_restoration", ["[PERSON_1]"], {"scope": "s"}, roles=[Role.INVOKER])
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "Jane" not in refused.text
    given = await rest.invoke("pii_restoration", ["[PERSON_1]"], {"scope": "s"}, roles=[Role.RESTORER])
    assert given.json()["content"] == ["Jane Smith"]


async def test_a_map_of_the_caller_s_own_needs_no_restorer(rest: Rest) -> None:
    given = await rest.invoke(
        "pii_restoration", ["[PERSON_1]"], {"redactions": {"PERSON_1": "Jane"}}, roles=[Role.INVOKER]
    )
    assert given.json() == {"content": ["Jane"], "metadata": {"unresolved": 0}}


async def test_the_mapping_needs_a_restorer_and_is_on_record(rest: Rest) -> None:
    arguments = {"returnMapping": True}
    refused = await rest.invoke("pii_redaction", [TEXT], arguments, roles=[Role.INVOKER])
    assert refused.status_code == 403
    given = await rest.invoke("pii_redaction", [TEXT], arguments, roles=[Role.INVOKER, Role.RESTORER])
    assert given.json()["metadata"]["redactions"] == {"PERSON_1": "Jane Smith", "SSN_1": "123-45-6789"}
    newest, older = (await events(rest))[:2]
    assert newest["details"]["mapping_returned"] is True
    assert (older["outcome"], older["error_code"]) == ("refused", "forbidden")


async def test_a_typed_handle_is_escaped_and_reveals_nobody(rest: Rest) -> None:
    await rest.invoke("pii_redaction", [TEXT], {"scope": "s"})
    arguments = {"scope": "s", "handles_in_input": "escape"}
    second = await rest.invoke("pii_redaction", ["Who is [PERSON_1]?"], arguments)
    assert second.json()["content"] == ["Who is [LITERAL_1]?"]
    back = await rest.invoke("pii_restoration", second.json()["content"], {"scope": "s"})
    assert back.json()["content"] == ["Who is [PERSON_1]?"]


async def test_history_of_this_scope_keeps_its_handles(rest: Rest) -> None:
    first = await rest.invoke("pii_redaction", [TEXT], {"scope": "s"})
    history = [*first.json()["content"], "and [PERSON_9]"]
    again = await rest.invoke("pii_redaction", history, {"scope": "s"})
    assert again.json()["content"] == [*first.json()["content"], "and [LITERAL_1]"]


async def test_two_scopes_and_two_tenants_share_nothing(rest: Rest) -> None:
    await rest.invoke("pii_redaction", [TEXT], {"scope": "s"})
    for scope in ("t", "unknown"):
        other = await rest.invoke("pii_restoration", ["[PERSON_1]"], {"scope": scope})
        assert other.json() == {"content": ["[PERSON_1]"], "metadata": {"unresolved": 1, "handlesLeft": 1}}
    made = await rest.services.tenants.create(HOST, f"{rest.tenant}-b")
    foreign = await rest.call(
        "POST",
        "/api/v1/middleware/pii_restoration/invoke",
        {"arguments": {"scope": "s"}, "context": ["[PERSON_1]"]},
        tenant=made.name,
    )
    assert foreign.json()["content"] == ["[PERSON_1]"]


async def test_unknown_types_are_counted_for_every_middleware_and_refused_where_asked(rest: Rest) -> None:
    context = [{"type": "hologram"}, "x"]
    counted = await rest.invoke("timestamp_injector", context)
    assert counted.json()["metadata"] == {"skipped": 1}
    refused = await rest.invoke("timestamp_injector", context, {"strict": True})
    assert refused.json()["pointer"] == "/context/0/type"


async def test_content_is_kept_sealed_only_where_the_policy_demands_it(rest: Rest) -> None:
    await rest.invoke("audit_logging", [TEXT], {"model": "m-1"})
    await put_policy(rest, audit_content=True)
    await rest.invoke("audit_logging", [TEXT], {"model": "m-1"})
    await rest.invoke("timestamp_injector", [TEXT])
    assert [event["content_kept"] for event in (await events(rest))[:3]] == [False, True, False]
    assert (await events(rest))[1]["details"] == {"direction": "outbound", "model": "m-1"}


async def test_hashes_are_keyed_by_tenant(rest: Rest) -> None:
    first = await rest.invoke("pii_redaction", [TEXT], {"mode": "hash"})
    assert first.json()["content"] == ["I am #PERSON, #SSN."]
    assert first.json()["metadata"]["masked"] == [
        {"type": "person", "mode": "hash", "count": 1},
        {"type": "ssn", "mode": "hash", "count": 1},
    ]


async def test_every_call_is_on_record_with_counts_and_digests(rest: Rest) -> None:
    await rest.invoke("pii_redaction", [TEXT, TEXT], {"scope": "s"})
    await rest.invoke("pii_restoration", ["[PERSON_1] [SSN_5]"], {"scope": "s"})
    restored, redacted = (await events(rest))[:2]
    assert redacted["counts"] == {"PERSON": 2, "SSN": 2}
    assert (redacted["middleware"], redacted["outcome"], redacted["blocks"]) == ("pii_redaction", "ok", 2)
    assert restored["counts"] == {"restored": 1, "unresolved": 1, "withheld": 0}
    assert restored["scope_ref"] == redacted["scope_ref"] != "s"
    assert all(len(event[name]) == 64 for event in (restored, redacted) for name in ("in_hmac", "out_hmac"))
    assert "Jane" not in str(restored) + str(redacted)


class NeverEnding(FakeDetector):
    """A detector that hangs."""

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
    ) -> Detection:
        await asyncio.Event().wait()
        return await super().detect(texts, options)


async def test_a_middleware_over_its_time_limit_is_refused_and_on_record(rest: Rest) -> None:
    await put_policy(rest, timeouts_ms={"pii_redaction": 50})
    hanging = Registry.discover(app.middlewares, engines(NeverEnding()))
    service = replace(rest.services.invoke, registry=hanging)
    caller = Caller(rest.tenant, "0a0b0c0d", frozenset({Role.INVOKER}))
    with pytest.raises(DeadlineExceededError) as caught:
        await service.invoke(caller, "pii_redaction", {}, [TEXT], RequestInfo("r1", None, None, math.inf))
    assert caught.value.details == {"limit_ms": 50}
    newest = (await events(rest))[0]
    assert (newest["outcome"], newest["error_code"]) == ("refused", "deadline_exceeded")


async def test_a_time_limit_for_a_middleware_that_does_not_exist_is_refused(rest: Rest) -> None:
    answer = await rest.put_policy({"timeouts_ms": {"nope": 5}}, roles=["operator"])
    assert (answer.status_code, answer.json()["pointer"]) == (422, "/timeouts_ms/nope")
