"""Secrets become handles, and the arguments of all redactions hold for them too."""

import json
from dataclasses import replace
from typing import Any

import pytest

from app.core.content.context import Context
from app.core.contracts.middleware import Outcome
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError, UnscannableContentError
from app.engines.secrets.scanner import RuleScanner
from app.middlewares.secret_redaction import SecretRedaction, SecretRedactionArguments
from tests.fakes import MemoryVault, engines

TEXT = "aws!k1 github!k2 aws!k1"


async def outcome_of(items: list[Any], **arguments: Any) -> Outcome:
    return await SecretRedaction(engines()).apply(Context.parse(items), SecretRedactionArguments(**arguments))


async def redacted(items: list[Any], **arguments: Any) -> list[Any]:
    return MemoryVault().settle((await outcome_of(items, **arguments)).context).to_json()


async def test_equal_secrets_share_a_handle() -> None:
    assert await redacted([TEXT]) == ["[SECRET_AWS_1] [SECRET_GITHUB_1] [SECRET_AWS_1]"]


async def test_providers_are_chosen_and_left_out() -> None:
    assert await redacted([TEXT], providers=["AWS"]) == ["[SECRET_AWS_1] github!k2 [SECRET_AWS_1]"]
    assert await redacted([TEXT], exclude=["secret_aws"]) == ["aws!k1 [SECRET_GITHUB_1] aws!k1"]
    with pytest.raises(InvalidArgumentsError) as caught:
        await outcome_of([TEXT], providers=["aws", "acme"])
    assert caught.value.details == {"pointer": "/arguments/providers/1", "known": ["aws", "github"]}


async def test_modes_are_chosen_per_provider() -> None:
    assert await redacted([TEXT], mode={"aws": "remove", "github": "hash"}) == [" #SECRET_GITHUB "]
    with pytest.raises(BlockedByPolicyError) as caught:
        await outcome_of([TEXT], mode={"github": "block"})
    assert caught.value.details == {"types": {"secret_github": 1}}


async def test_what_may_not_change_is_reported_or_refused() -> None:
    item = {"type": "resource_link", "uri": "x://aws!k1", "name": "n"}
    outcome = await outcome_of([item])
    assert outcome.metadata["reported"] == [{"type": "secret_aws", "place": "uri", "item": 0, "count": 1}]
    assert outcome.engine is not None and outcome.engine.name == "fake"
    with pytest.raises(UnscannableContentError):
        await outcome_of([item], unscanned="block")


async def test_what_data_call_a_password_is_one_wherever_the_data_stand() -> None:
    """By itself such a value looks like nothing; half of all credentials reach a model like this."""
    data = {"db": {"password": "kX9!vQ2mZ7pL", "user": "bob"}, "env": [{"name": "PWD_KEY", "value": "n"}]}
    kept = json.dumps(data).replace("kX9!vQ2mZ7pL", "[SECRET_PASSWORD_1]")
    middleware = SecretRedaction(replace(engines(), secrets=RuleScanner()))
    items: list[Any] = [
        {"type": "tool_use", "id": "1", "name": "connect", "input": data},
        {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": data},
        json.dumps(data),
    ]
    outcome = await middleware.apply(Context.parse(items), SecretRedactionArguments())
    used, result, text = MemoryVault().settle(outcome.context).to_json()
    assert json.dumps(used["input"]) == json.dumps(result["structuredContent"]) == text == kept


async def test_numbers_that_their_name_calls_a_secret_stay_where_values_are_not_judged_by_names() -> None:
    item = {"type": "tool_use", "id": "1", "name": "open", "input": {"pin": 482_915, "count": 482_915}}
    hidden = {**item, "input": {"pin": "[SECRET_PASSWORD_1]", "count": 482_915}}
    middleware = SecretRedaction(replace(engines(), secrets=RuleScanner()))
    for options, expected in (({}, hidden), ({"entropy": False}, item), ({"exclude": ["password"]}, item)):
        outcome = await middleware.apply(Context.parse([item]), SecretRedactionArguments(**options))
        assert MemoryVault().settle(outcome.context).to_json() == [expected]
