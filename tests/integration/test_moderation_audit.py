"""Decisions of content moderation are on record: what was flagged, how badly, and that a call was blocked."""

from typing import Any

import pytest

from tests.integration.rest_app import Rest, open_rest


@pytest.fixture
async def rest(database_url: str) -> Any:
    async with open_rest(database_url) as opened:
        yield opened


async def newest_event(rest: Rest) -> dict[str, Any]:
    answer = await rest.call("GET", "/api/v1/audit/events?action=middleware.invoke", roles=["auditor"])
    event: dict[str, Any] = answer.json()["items"][0]
    return event


async def test_an_annotated_call_is_on_record_with_its_flags_and_without_content(rest: Rest) -> None:
    answer = await rest.invoke(
        "content_moderation", ["How can I hurt someone?"], {"policies": ["harassment"]}
    )
    assert answer.json()["metadata"]["flags"] == ["potential_harm_seeking"]
    event = await newest_event(rest)
    assert event["counts"] == {"potential_harm_seeking": 1}
    assert {"level": "enterprise", "severity": "medium", "allow": True}.items() <= event["details"].items()
    assert "someone" not in str(event)


async def test_a_blocked_call_is_on_record_with_what_it_was_blocked_for(rest: Rest) -> None:
    answer = await rest.invoke("content_moderation", ["I will kill you"], {"action": "block"})
    assert (answer.status_code, answer.json()["code"]) == (403, "blocked_by_policy")
    assert "kill" not in answer.text
    event = await newest_event(rest)
    assert (event["outcome"], event["error_code"]) == ("refused", "blocked_by_policy")
    assert event["counts"] == {"violent_content": 1}
    assert {"severity": "high", "allow": False}.items() <= event["details"].items()


async def test_a_tenant_s_policy_fixes_level_and_action(rest: Rest) -> None:
    fixed = {"content_moderation": {"level": "regulated", "action": "block"}}
    answer = await rest.put_policy({"fixed_arguments": fixed}, roles=["operator"])
    assert answer.status_code == 200, answer.text
    refused = await rest.invoke("content_moderation", ["hello"], {"level": "consumer"})
    assert refused.json()["code"] == "blocked_by_policy"
    flagged = await rest.invoke("content_moderation", ["a doubtful remark"], {})
    assert flagged.json()["metadata"]["flags"] == ["illicit_content"]
