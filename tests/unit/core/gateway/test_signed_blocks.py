"""Signed blocks go back to the provider byte for byte."""

import json

import pytest

from app.core.gateway.families import anthropic_messages, openai_responses
from app.core.gateway.json_body import JsonBody
from app.core.gateway.requests import GatewayRequest

SIGNATURE = "EqQBCkYIBxgC" * 6
AS_SIGNED = f'{{"type": "thinking","thinking":"He is [PERSON_1] \\u00e9","signature":"{SIGNATURE}"}}'
REASONING = (
    '{"id":"rs_1","type":"reasoning","status":null,'
    f'"summary":[{{"type":"summary_text","text":"[PERSON_1] asks"}}],"encrypted_content":"{SIGNATURE}"}}'
)


def messages(block):
    body = {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}, block]}]}
    return GatewayRequest.read(JsonBody.parse(json.dumps(body).encode()), anthropic_messages.REQUEST)


def test_the_caller_s_block_is_found_by_its_signature_and_goes_back_as_signed():
    block = json.loads(AS_SIGNED)
    original = messages(block).signed[0]
    caller = messages({**block, "thinking": "He is Anna é", "cache_control": {"type": "ephemeral"}})
    assert [signed.digest for signed in caller.signed] == [original.digest]
    sent = caller.with_signed({original.digest: AS_SIGNED}).to_bytes().decode()
    assert '"thinking": "He is [PERSON_1] \\u00e9"' in sent and f'"{SIGNATURE}"' in sent
    assert '"cache_control": {"type": "ephemeral"}' in sent


def test_another_signature_is_another_block():
    first, second = (
        messages({"type": "thinking", "thinking": "x", "signature": SIGNATURE + end}) for end in ("a", "b")
    )
    assert first.signed[0].digest != second.signed[0].digest
    assert second.with_signed({first.signed[0].digest: AS_SIGNED}).to_bytes() == second.to_bytes()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "redacted_thinking", "data": SIGNATURE},
        {"type": "thinking", "thinking": "x", "signature": SIGNATURE},
        {"type": "compaction", "content": "x", "encrypted_content": SIGNATURE},
    ],
)
def test_no_middleware_s_change_reaches_what_is_signed(block):
    request = messages(block)
    assert [signed.kind for signed in request.signed] == [block["type"]]
    assert json.loads(request.signed[0].raw) == block


def test_what_nobody_signed_is_no_signed_block():
    assert messages({"type": "thinking", "thinking": "x", "signature": ""}).signed == ()
    assert messages({"type": "text", "text": "x", "signature": SIGNATURE}).signed == ()


def test_an_item_of_reasoning_takes_only_the_members_that_the_caller_sent():
    body = {
        "input": [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "Anna asks"}],
                "encrypted_content": SIGNATURE,
            }
        ]
    }
    request = GatewayRequest.read(JsonBody.parse(json.dumps(body).encode()), openai_responses.REQUEST)
    sent = json.loads(request.with_signed({request.signed[0].digest: REASONING}).to_bytes())
    assert sent["input"][0]["summary"] == [{"type": "summary_text", "text": "[PERSON_1] asks"}]
    assert "status" not in sent["input"][0]
