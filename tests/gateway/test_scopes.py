"""Nobody reads another's scope: what one user told, no other gets back, whatever handles it writes."""

import json
import re
from typing import Any
from uuid import uuid4

import anthropic
import openai
import pytest

from tests.gateway.test_chat import PLANTED, TEXT, assert_nothing_arrived

FIRST = "Hello, who am I?"
HANDLE = re.compile(r"\[[A-Z_]+_\d+\]")


@pytest.fixture(scope="module")
def keys(shared: Any) -> tuple[str, str]:
    """Return two keys that may restore and act for end users."""
    roles = ("invoker", "restorer", "delegate")
    return shared.host_key(*roles), shared.host_key(*roles)


@pytest.fixture(autouse=True)
def _usual_policy(gateway: Any) -> Any:
    yield
    gateway.put_policy()


def chat(
    gateway: Any, key: str, user: str | None, turns: tuple[str, str], *, stream: bool = False, **more: Any
) -> Any:
    """Return the answer's text and the scope that it names."""
    headers = {} if user is None else {"X-Sluice-User": user}
    client = gateway.openai(key, default_headers={**headers, **more.pop("headers", {})})
    messages = [{"role": "user", "content": turn} for turn in turns]
    raw = client.chat.completions.with_raw_response.create(
        model="gpt-5-mini", messages=messages, stream=stream, **more
    )
    answer = raw.parse()
    if stream:
        said = "".join(chunk.choices[0].delta.content or "" for chunk in answer)
    else:
        said = answer.choices[0].message.content
    return said, raw.headers["x-sluice-scope"]


def responses(
    gateway: Any, key: str, user: str | None, turns: tuple[str, str], *, stream: bool = False, **more: Any
) -> Any:
    headers = {} if user is None else {"X-Sluice-User": user}
    client = gateway.openai(key, default_headers={**headers, **more.pop("headers", {})})
    asked = [{"role": "user", "content": turn} for turn in turns]
    raw = client.responses.with_raw_response.create(model="gpt-5-mini", input=asked, stream=stream, **more)
    answer = raw.parse()
    if stream:
        said = "".join(event.delta for event in answer if event.type == "response.output_text.delta")
    else:
        said = answer.output_text
    return said, raw.headers["x-sluice-scope"]


def messages(
    gateway: Any, key: str, user: str | None, turns: tuple[str, str], *, stream: bool = False, **more: Any
) -> Any:
    headers = {} if user is None else {"X-Sluice-User": user}
    client = gateway.anthropic(key, default_headers={**headers, **more.pop("headers", {})})
    if "prompt_cache_key" in more:
        more["metadata"] = {"user_id": more.pop("prompt_cache_key")}
    content = [{"type": "text", "text": turns[0], "cache_control": {"type": "ephemeral"}}]
    asked: Any = [{"role": "user", "content": content}, {"role": "assistant", "content": "Well?"}]
    asked.append({"role": "user", "content": turns[1]})
    raw = client.messages.with_raw_response.create(
        model="claude-x", max_tokens=9, messages=asked, stream=stream, **more
    )
    answer = raw.parse()
    if stream:
        deltas = [event.delta for event in answer if event.type == "content_block_delta"]
        said = "".join(delta.text for delta in deltas if delta.type == "text_delta")
    else:
        said = answer.content[0].text
    return said, raw.headers["x-sluice-scope"]


CASES = [
    *((api, session, "keys") for api in (chat, messages) for session in (None, "one-for-all")),
    (responses, "one-for-all", "users"),
    (chat, "one-for-all", "users"),
    (messages, None, "users"),
    (chat, None, "user and none"),
    (messages, "one-for-all", "none and user"),
]


@pytest.mark.parametrize(("asked", "session", "pair"), CASES)
def test_two_callers_with_the_same_first_message_and_cache_key_share_nothing(
    gateway, keys, asked, session, pair
):
    mine, theirs = {
        "keys": ((keys[0], None), (keys[1], None)),
        "users": ((keys[0], "ada"), (keys[0], "bob")),
        "user and none": ((keys[0], "ada"), (keys[0], None)),
        "none and user": ((keys[0], None), (keys[0], "ada")),
    }[pair]
    first = f"{FIRST} {uuid4().hex}"
    more: Any = {} if session is None else {"prompt_cache_key": f"{session}-{first[-8:]}"}
    said, scope = asked(gateway, *mine, (first, TEXT), **more)
    assert said == f"You said: {TEXT}"
    sent = gateway.provider.last.json
    handles = HANDLE.findall(json.dumps((sent.get("messages") or sent["input"])[-1]))
    assert len(handles) >= len(PLANTED)
    typed = " ".join(handles)
    for stream in (False, True):
        answered, other = asked(gateway, *theirs, (first, typed), stream=stream, **more)
        assert answered == f"You said: {typed}" and other != scope
    # No header leads into the first scope.
    arrived = len(gateway.provider.arrived)
    with pytest.raises((openai.NotFoundError, anthropic.NotFoundError)):
        asked(gateway, *theirs, (first, typed), headers={"X-Sluice-Scope": scope}, **more)
    assert len(gateway.provider.arrived) == arrived
    # Who told the originals gets them back where they stand in the same request, and only there.
    both = f"{TEXT} And {typed}"
    assert asked(gateway, *mine, (first, both), **more)[0].startswith(f"You said: {TEXT} And {PLANTED[0]}")
    assert asked(gateway, *mine, (first, typed), **more) == (f"You said: {typed}", scope)
    assert_nothing_arrived(gateway)


def test_a_scope_that_a_caller_names_is_its_own(gateway, keys, conversation):
    chat(gateway, keys[0], "ada", (FIRST, TEXT), headers=conversation)
    # In a scope that somebody named, handles are restored whatever else the request holds.
    assert (
        chat(gateway, keys[0], "ada", (FIRST, "[PERSON_1]"), headers=conversation)[0]
        == f"You said: {PLANTED[0]}"
    )
    for key, user in ((keys[0], "bob"), (keys[0], None), (keys[1], "ada"), (keys[1], None)):
        with pytest.raises(openai.NotFoundError) as refused:
            chat(gateway, key, user, (FIRST, "[PERSON_1]"), headers=conversation)
        assert refused.value.code == "sluice_not_found"


def test_a_scope_that_the_policy_shares_is_everybodys_and_no_other(gateway, keys, conversation):
    gateway.put_policy(gateway={"sharedScopes": ["team-*"]})
    team = {"X-Sluice-Scope": f"team-{conversation['X-Sluice-Scope']}"}
    chat(gateway, keys[0], "ada", (FIRST, TEXT), headers=team)
    assert chat(gateway, keys[1], None, (FIRST, "[PERSON_1]"), headers=team)[0] == f"You said: {PLANTED[0]}"
    chat(gateway, keys[0], "ada", (FIRST, TEXT), headers=conversation)
    with pytest.raises(openai.NotFoundError):
        chat(gateway, keys[1], None, (FIRST, "[PERSON_1]"), headers=conversation)
    assert_nothing_arrived(gateway)


def test_the_stable_scope_gives_one_prefix_and_tells_nobody(gateway, keys):
    gateway.put_policy(gateway={"stableScope": True})
    system = f"You work for {PLANTED[0]}. Be brief."

    def asked(key: str, user: str | None, instructions: str, text: str) -> str:
        headers = {} if user is None else {"X-Sluice-User": user}
        client = gateway.openai(key, default_headers=headers)
        told: Any = [{"role": "system", "content": instructions}, {"role": "user", "content": text}]
        answer = client.chat.completions.create(model="gpt-5-mini", messages=told)
        return str(answer.choices[0].message.content)

    asked(keys[0], "ada", system, "Hello.")
    first = gateway.provider.last.json["messages"]
    asked(keys[1], None, system, f"Who is {PLANTED[0]}? Not Agnethe Quistgaard.")
    second = gateway.provider.last.json["messages"]
    assert second[: len(first) - 1] == first[:-1]
    handle = HANDLE.findall(first[-2]["content"])[0]
    assert int(handle.rpartition("_")[2][:-1]) > 1_000_000
    # Restored where the request's own instructions hold the original, and nowhere else.
    assert asked(keys[1], None, system, f"{handle}?") == f"You said: {PLANTED[0]}?"
    other = "You work for Agnethe Quistgaard. Be brief."
    for user in (None, "ada", "bob"):
        assert asked(keys[0], user, other, f"{handle}?") == f"You said: {handle}?"
        assert asked(keys[0], user, "Be brief.", f"{handle}?") == f"You said: {handle}?"
    assert_nothing_arrived(gateway)


@pytest.mark.parametrize("asked", [chat, responses, messages])
def test_a_service_gets_no_originals_for_an_end_user_who_may_not_have_them(gateway, keys, asked):
    rules = [
        {"users": ["mallory"], "refuse": True},
        {"users": ["ada"], "roles": ["invoker"]},
        {"users": ["bob"], "roles": ["invoker", "restorer"]},
    ]
    gateway.put_policy(identity={"end_users": {"rules": rules}})
    first = f"{FIRST} {uuid4().hex}"
    for user, restores in (("ADA", False), ("bob", True), ("nobody", True), (None, True)):
        for stream in (False, True):
            said, _ = asked(gateway, keys[0], user, (first, TEXT), stream=stream)
            assert (said == f"You said: {TEXT}") is restores, (user, said)
            assert any(value in said for value in PLANTED) is restores, (user, said)
    arrived = len(gateway.provider.arrived)
    with pytest.raises((openai.PermissionDeniedError, anthropic.PermissionDeniedError)):
        asked(gateway, keys[0], "mallory", (first, TEXT))
    assert len(gateway.provider.arrived) == arrived
