"""One value has one handle in a request, also where instructions and tools share theirs with all conversations."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.test_chat import PLANTED, assert_nothing_arrived

BOSS, MAIL = "Agnethe Quistgaard", "agnethe.q@kunde.example.de"
USER = PLANTED[0]
INSTRUCTIONS = f"You work for {BOSS}. Be brief."
TOOL_TEXT = f"Writes to {MAIL}."
HANDLE = re.compile(r"\[([A-Z]+)_([0-9]+)\]")
SCHEMA = {"type": "object", "properties": {}}


def sent(gateway: Any, path: str, texts: list[str], instructions: str = INSTRUCTIONS) -> Any:
    """Send a conversation; return what the model got of the instructions, the tool and each message."""
    spoken = [
        {"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts)
    ]
    if path.endswith("/chat/completions"):
        tool = {"type": "function", "function": {"name": "f", "description": TOOL_TEXT, "parameters": SCHEMA}}
        told: Any = {"model": "gpt-5-mini", "tools": [tool]}
        told["messages"] = [{"role": "system", "content": instructions}, *spoken]
    elif path.endswith("/responses"):
        tool = {"type": "function", "name": "f", "description": TOOL_TEXT, "parameters": SCHEMA}
        told = {"model": "gpt-5-mini", "tools": [tool], "instructions": instructions, "input": spoken}
    else:
        tool = {"name": "f", "description": TOOL_TEXT, "input_schema": SCHEMA}
        told = {"model": "claude-x", "max_tokens": 9, "tools": [tool], "system": instructions}
        told["messages"] = spoken
    answer = gateway.post(path, told)
    assert answer.status_code == 200, answer.text
    came = gateway.provider.last.json
    messages = (came.get("messages") or came["input"])[-len(texts) :]
    system = came.get("system") or came.get("instructions") or came["messages"][: -len(texts)]
    return (
        json.dumps(system),
        json.dumps(came["tools"]),
        [message["content"] for message in messages],
        answer.text,
    )


PATHS = ("/openai/v1/chat/completions", "/openai/v1/responses", "/anthropic/v1/messages")


@pytest.fixture(autouse=True)
def _stable(gateway: Any) -> Iterator[None]:
    gateway.put_policy(gateway={"stableScope": True})
    yield
    gateway.put_policy()


@pytest.mark.parametrize("path", PATHS)
def test_a_value_of_the_instructions_has_one_handle_everywhere(gateway, path):
    told = [f"I am {USER}. Did {BOSS} answer at {MAIL}?", f"{BOSS} did, {USER}.", f"Thank {BOSS}."]
    forms: list[str] = []
    for turns in (1, 3, 3):
        system, tool, messages, answer = sent(gateway, path, told[:turns])
        boss, mail = HANDLE.findall(system)[0], HANDLE.findall(tool)[0]
        assert int(boss[1]) > 1_000_000 and int(mail[1]) > 1_000_000
        whole = "".join(messages)
        assert set(HANDLE.findall(whole)) - {boss, mail} == {("PERSON", "1")}
        assert messages[0] == f"I am [PERSON_1]. Did [PERSON_{boss[1]}] answer at [EMAIL_{mail[1]}]?"
        assert messages[: len(forms)] == forms
        assert not HANDLE.search(answer) and any(value in answer for value in (BOSS, MAIL))
        forms = messages
    assert_nothing_arrived(gateway)
    assert not any(value in gateway.provider.everything().decode() for value in (BOSS, MAIL))


@pytest.mark.parametrize("path", PATHS)
def test_other_instructions_make_another_prefix(gateway, path):
    told = [f"I am {USER}, of {BOSS}."]
    _, _, (with_boss,), _ = sent(gateway, path, told)
    _, _, (without,), answer = sent(gateway, path, told, "Be brief.")
    # Negative control: where the instructions do not name her, the conversation has a handle of its own for her.
    assert re.fullmatch(r"I am \[PERSON_1\], of \[PERSON_1\d{6}\]\.", with_boss)
    assert re.fullmatch(r"I am \[PERSON_1\], of \[PERSON_2\]\.", without)
    assert BOSS in answer
    assert sent(gateway, path, told)[2] == [with_boss]
    assert sent(gateway, path, told, "Be brief.")[2] == [without]


def test_instructions_in_between_leave_what_was_said_before(gateway):
    path = PATHS[0]
    told = [{"role": "user", "content": f"I am {USER}, of {BOSS}."}]

    def asked(messages: list[Any]) -> list[str]:
        body = {"model": "gpt-5-mini", "messages": messages}
        assert gateway.post(path, body).status_code == 200
        return [message["content"] for message in gateway.provider.last.json["messages"][-len(messages) :]]

    first = asked(told)
    between = [{"role": "assistant", "content": "Noted."}, {"role": "system", "content": f"{BOSS} is known."}]
    later = asked([*told, *between, {"role": "user", "content": f"Who is {BOSS}?"}])
    assert later[0] == first[0] == "I am [PERSON_1], of [PERSON_2]."
    assert later[2:] == ["[PERSON_2] is known.", "Who is [PERSON_2]?"]
    assert gateway.events("gateway.request")[0]["details"]["prefix_changed"] == 0
