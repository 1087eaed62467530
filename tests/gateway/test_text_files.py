"""Texts that travel as base64: what the conversation knows leaves in none of them."""

import base64
from typing import Any

import pytest

NAME = "Mülgürt"
TOLD = f"The patient's name is {NAME}. Write to ada.berg@kunde.example.de."
FILE = f"{NAME} 7\nx;{NAME};2\n"


def data_url(text: str, kind: str = "text/csv") -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"


def chat(text: str, file: str | None) -> tuple[str, Any]:
    content: list[Any] = [{"type": "text", "text": text}]
    content += [{"type": "file", "file": {"filename": "a.csv", "file_data": file}}] if file else []
    return "/openai/v1/chat/completions", {
        "model": "gpt-5-mini",
        "messages": [{"role": "user", "content": content}],
    }


def responses(text: str, file: str | None) -> tuple[str, Any]:
    content: list[Any] = [{"type": "input_text", "text": text}]
    content += [{"type": "input_file", "filename": "a.csv", "file_data": file}] if file else []
    return "/openai/v1/responses", {
        "model": "gpt-5-mini",
        "input": [{"role": "user", "content": content}],
    }


def sent_file(value: Any) -> str:
    part = (value.get("messages") or value["input"])[-1]["content"][1]
    url = part.get("file", part)["file_data"]
    return base64.b64decode(url.partition(",")[2]).decode()


@pytest.mark.parametrize("kind", ["text/csv", "application/json", "text/plain;charset=utf-8"])
@pytest.mark.parametrize("asked", [chat, responses])
def test_what_only_the_conversation_knows_leaves_in_no_file_either(gateway, conversation, asked, kind):
    # With the policy's middlewares off, it is the last look at the bytes that finds it.
    assert gateway.post(*asked(TOLD, None), headers=conversation).status_code == 200
    gateway.put_policy(gateway={"pipelines": [{"outbound": []}]})
    try:
        body = asked("Read this.", data_url(FILE, kind))
        assert gateway.post(*body, headers=conversation).status_code == 200
        file = sent_file(gateway.provider.last.json)
        elsewhere = gateway.post(*body, headers={"X-Sluice-Scope": conversation["X-Sluice-Scope"] + "-other"})
        assert elsewhere.status_code == 200
        assert sent_file(gateway.provider.last.json) == FILE, "another conversation does not know it"
    finally:
        gateway.put_policy()
    assert NAME not in file and file.count("[PERSON_") == 2
    assert file.replace(file[: file.index("]") + 1], NAME) == FILE
    assert gateway.events("gateway.request")[1]["counts"]["egress_PERSON"] == 2


@pytest.mark.parametrize("asked", [chat, responses])
def test_a_key_of_ours_leaves_in_no_file(gateway, conversation, asked):
    arrived = len(gateway.provider.arrived)
    refused = gateway.post(*asked("Read this.", data_url(f"key: {gateway.key}")), headers=conversation)
    assert refused.status_code in {400, 403} and gateway.key not in refused.text
    assert len(gateway.provider.arrived) == arrived
