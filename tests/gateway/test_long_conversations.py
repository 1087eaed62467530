"""A conversation that is sent whole at each turn: what an earlier turn made of its texts stays, or is counted."""

import re
from typing import Any

import pytest

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


SPOKEN = (
    ("user", "I am Ottilie Brandstätter, write to ottilie.b@kunde.example.de, and Obermüller knows."),
    ("assistant", "Noted, Ottilie Brandstätter."),
    ("user", "Keller was late, as Brandstätter said; the account is DE89370400440532013000."),
    ("assistant", "I see."),
    ("user", "What does [PERSON_900] mean here?"),
    ("user", "Write to ottilie.b@kun"),
    ("user", "de.example.de, my friend."),
    ("assistant", "ottilie.b@kunde.example.de has it."),
    ("user", f"It was {NAME} who came, not Keller's brother. The word is {WORD}."),
    ("assistant", '{"to": "Ottilie Brandstätter", "from": "Keller"}'),
    ("user", "Keller was late, as Brandstätter said; the account is DE89370400440532013000."),
    ("assistant", "Obermüller said so. [MAIL_1]"),
    ("user", f"password = {WORD}. I am Wolfgang Obermüller."),
    ("assistant", "I see."),
    ("user", "And now?"),
)


def said(turns: int) -> list[dict[str, Any]]:
    """Return what was said until then, in the shapes that clients give to messages."""
    return [
        {"role": role, "content": text if number % 4 != 2 else [{"type": "text", "text": text}]}
        for number, (role, text) in enumerate(SPOKEN[:turns])
    ]


def handled(texts: list[Any]) -> list[str]:
    """Return the texts with their handles numbered by where they first stand, so that two scopes can be compared."""
    numbers: dict[str, str] = {}
    plain = [text if isinstance(text, str) else text[0]["text"] for text in texts]
    named = re.compile(r"\[([A-Z_]+)_[0-9]+\]")
    return [
        named.sub(lambda handle: numbers.setdefault(handle[0], f"<{handle[1]} {len(numbers)}>"), text)
        for text in plain
    ]


def test_a_conversation_turn_by_turn_becomes_what_it_becomes_at_once(
    gateway: Gateway, conversation: dict[str, str]
) -> None:
    whole: list[str] = []
    for turns in range(1, len(SPOKEN) + 1):
        at_once = {"X-Sluice-Scope": f"{conversation['X-Sluice-Scope']}-{turns}"}
        grown = turn(gateway, conversation, said(turns))
        assert handled(grown) == handled(turn(gateway, at_once, said(turns))), SPOKEN[turns - 1]
        assert turn(gateway, conversation, said(turns)) == grown  # asked again
        counts = [event["counts"] for event in gateway.events("gateway.request")[:3]]
        assert counts[0] == counts[1] == counts[2]  # what is not read again counts as well
        whole = handled(grown)
    hidden = "\n".join(whole)
    for value in ("Ottilie", "Brandstätter", "Keller", "Obermüller", WORD, "ottilie.b@kun", "DE8937"):
        assert value not in hidden, value
    assert "As it" not in hidden and "I see." in hidden


@pytest.mark.parametrize("erased", ["scope", "value"])
def test_what_became_of_earlier_texts_goes_with_what_is_erased(
    gateway: Gateway, conversation: dict[str, str], erased: str
) -> None:
    spoken, scope = said(4), f"/api/v1/vault/scopes/{conversation['X-Sluice-Scope']}"
    before = turn(gateway, conversation, spoken)
    assert turn(gateway, conversation, spoken) == before
    if erased == "scope":
        done = gateway.http.delete(scope)
    else:
        done = gateway.http.post("/api/v1/vault/erasures", json={"value": "Ottilie Brandstätter"})
    assert done.is_success, done.text
    after = turn(gateway, conversation, spoken)
    assert handled(after) == handled(before)
    entries = gateway.http.get(f"{scope}/entries").json()["items"]
    assert set(re.findall(r"\[([A-Z_]+_[0-9]+)\]", str(after))) == {entry["handle"] for entry in entries}


def test_a_changed_policy_applies_to_earlier_texts(gateway: Gateway, conversation: dict[str, str]) -> None:
    spoken = said(4)
    account = SPOKEN[2][1].rpartition(" ")[2].rstrip(".")
    try:
        gateway.put_policy(default_arguments={"pii_redaction": {"exclude": ["iban"]}})
        assert any(account in str(text) for text in turn(gateway, conversation, spoken))
    finally:
        gateway.put_policy()
    assert not any(account in str(text) for text in turn(gateway, conversation, spoken))
