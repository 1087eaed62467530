"""A conversation that is sent whole at each turn: what an earlier turn made of its texts stays, or is counted."""

from typing import Any

from tests.gateway.conftest import Gateway

WORD = "kq7Zt2mWv9Lr4Xn8"
"""Nothing tells that it is a secret before a text calls it one."""
NAME = "Maria Keller"


def turn(gateway: Gateway, headers: dict[str, str], messages: list[dict[str, Any]]) -> list[str]:
    """Send a turn; return the texts that the model got, without the note."""
    client = gateway.openai(default_headers=headers)
    client.chat.completions.create(model="gpt-5-mini", messages=messages)  # type: ignore[arg-type]
    sent = gateway.provider.last.json["messages"]
    return [message["content"] for message in sent[-len(messages) :]]


def test_an_earlier_text_that_changes_is_counted_once(gateway: Gateway, conversation: dict[str, str]) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": f"The word of the day is {WORD}, {NAME}."}]
    first = turn(gateway, conversation, said)
    assert WORD in first[0] and NAME not in first[0]
    said += [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": "And now?"}]
    assert turn(gateway, conversation, said)[0] == first[0]
    said += [{"role": "assistant", "content": "Go on."}, {"role": "user", "content": f"password = {WORD}"}]
    later = turn(gateway, conversation, said)
    assert not any(WORD in text for text in later) and later[0] != first[0]
    assert turn(gateway, conversation, said) == later
    changes = [event["details"]["prefix_changed"] for event in gateway.events("gateway.request")[:4]]
    assert changes[::-1] == [0, 0, 1, 0]
