"""Names of members that hold personal data pass like values: the model sees handles, the tool the truth."""

import json
from typing import Any

from app.core.upstream import Hooks
from app.services.forward.tool_hooks import HookScope
from tests.integration.forwarding_setup import Desk
from tests.integration.test_passages import PERSON, SSN, passage
from tests.integration.test_passages import desk as desk  # noqa: PLC0414 - the fixture


async def test_names_of_members_are_redacted_unless_the_step_says_otherwise(desk: Desk) -> None:
    by_name = {PERSON: 3, f"{PERSON} ": {"of " + PERSON: [1]}, "total": 4}
    told: list[Any] = []

    async def answer(_method: str, params: Any, _hooks: Hooks) -> dict[str, Any]:
        told.append(params["arguments"])
        return {
            "content": [{"type": "text", "text": json.dumps(by_name), "_meta": {f"x.example/{PERSON}": 1}}],
            "structuredContent": {"counts": by_name, "last": "z"},
        }

    desk.server("crm", answer=answer)
    await desk.allow(passages=[passage(restore_arguments=True)])
    made = await desk.call("crm__find", {})
    assert made["structuredContent"] == {
        "counts": {"[PERSON_1]": 3, "[PERSON_1] ": {"of [PERSON_1]": [1]}, "total": 4},
        "last": "z",
    }
    assert list(made["structuredContent"]["counts"]) == ["[PERSON_1]", "[PERSON_1] ", "total"]
    assert json.loads(made["content"][0]["text"]) == made["structuredContent"]["counts"]
    assert list(made["content"][0]["_meta"]) == [f"x.example/{PERSON}"], "a name that programs agree on"

    # The model may send a name back: the tool gets the original, and its result has the handle again.
    scope = HookScope(made["_meta"]["dev.sluice/scope"], from_caller=True)
    again = await desk.call("crm__find", {"counts": {"[PERSON_1]": [{"x [PERSON_1]": 1}]}}, scope=scope)
    assert told[-1] == {"counts": {PERSON: [{f"x {PERSON}": 1}]}}
    assert again["structuredContent"]["counts"]["[PERSON_1]"] == 3

    for mode, names in (("mask", ["*" * 10, "*" * 10 + " ", "total"]), ("report", list(by_name))):
        step = {"name": "pii_redaction", "arguments": {"mode": mode}}
        await desk.allow(passages=[passage(results=[step])])
        assert list((await desk.call("crm__find", {}))["structuredContent"]["counts"]) == names
    step = {"name": "pii_redaction", "arguments": {"member_names": "report"}}
    await desk.allow(passages=[passage(results=[step])])
    assert (await desk.call("crm__find", {}))["structuredContent"]["counts"] == by_name


async def test_names_that_become_equal_lose_no_member(desk: Desk) -> None:
    async def answer(*_: Any) -> dict[str, Any]:
        return {"content": [], "structuredContent": {PERSON: 1, SSN: 2, "a": {PERSON: 3}}}

    desk.server("crm", answer=answer)
    await desk.allow(passages=[passage(results=[{"name": "pii_redaction", "arguments": {"mode": "remove"}}])])
    made = await desk.call("crm__find", {})
    assert made["structuredContent"] == {"": 1, " (2)": 2, "a": {"": 3}}
