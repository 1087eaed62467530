"""What requests and answers say beside their texts: variables, probabilities, events of a stream, ids of users."""

import json
import random
from typing import Any

from app.core.access import Role
from app.services.access.access import HOST
from tests.planting import Planter
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, client
from tests.sampling import SEED


def tokens(*texts: str) -> list[dict[str, Any]]:
    return [
        {"token": text, "logprob": -0.1, "bytes": list(text.encode()), "top_logprobs": []} for text in texts
    ]


def bodies(value: str) -> list[dict[str, Any]]:
    """Return bodies that hold a value, in a text and cut over the tokens of its probabilities."""
    half = tokens("Ask ", value[:5], value[5:], " at once")
    block = {"type": "output_text", "text": f"Ask {value} at once", "logprobs": half}
    message = {"role": "assistant", "content": f"Ask {value} at once"}
    legacy = {"tokens": [value[:5], value[5:]], "token_logprobs": [-0.1, -0.2]}
    return [
        {"output": [{"type": "message", "role": "assistant", "content": [block]}]},
        {"choices": [{"index": 0, "message": message, "logprobs": {"content": half, "refusal": None}}]},
        {"choices": [{"index": 0, "delta": message, "logprobs": {"content": half}}]},
        {"choices": [{"index": 0, "text": f"Ask {value} at once", "logprobs": legacy}]},
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": f"Ask {value} at once"}]},
                    "logprobsResult": {"chosenCandidates": [{"token": value[:5]}, {"token": value[5:]}]},
                }
            ]
        },
        {
            "type": "response.output_text.delta",
            "item_id": "m",
            "delta": f"Ask {value} at once",
            "logprobs": half,
        },
        {"type": "response.completed", "response": {"output": [{"type": "message", "content": [block]}]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"Ask {value}"}},
        {"contentBlockDelta": {"delta": {"text": f"Ask {value} at once"}, "contentBlockIndex": 0}},
        {
            "type": "configuration_update",
            "session": {"instructions": [f"Ask {value}", {"x": value}]},
            "why": value,
        },
    ]


async def test_no_probability_and_no_event_of_a_stream_repeats_what_was_redacted(tmp_path) -> None:
    value = random.Random(f"{SEED} tokens").choice(["amalia", "chidi", "farida"]) + "@example.net"
    params = {"name": "pii_redaction", "event": "llm/completion", "phase": "request"}
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, _):
        rest = f"{url.removesuffix('/mcp')}/api/v1/middleware/pii_redaction/invoke"
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                for body, calm in zip(bodies(value), bodies("the library"), strict=True):
                    reply = await wire.call("interceptor/invoke", **params, payload=body)
                    assert hidden(reply.result["payload"], value), reply.result["payload"]
                    reply = await wire.call("interceptor/invoke", **params, payload=calm)
                    assert reply.result["payload"] == calm
                    for held in (body, calm):
                        answer = await wire.http.post(rest, json={"context": [held]})
                        [item] = answer.json()["content"]
                        assert hidden(item, value) and (item == held) == (held is calm), item


def hidden(made: Any, value: str) -> bool:
    """Return whether neither a value nor the second of its halves is anywhere, nor its bytes."""
    shown = json.dumps(made)
    return value not in shown and value[5:] not in shown and str(list(value[5:].encode()))[1:-1] not in shown


async def test_variables_of_a_prompt_are_covered(tmp_path) -> None:
    params = {"name": "pii_redaction", "event": "llm/completion", "phase": "request"}
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, _):
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                planter = Planter(random.Random(f"{SEED} {revision} variables"))
                note = {"type": "input_text", "text": planter.text()}
                variables = {"customer": planter.text(), "note": note, "city": "Bern"}
                prompt = {"id": "pmpt_1", "version": "2", "variables": variables}
                reply = await wire.call(
                    "interceptor/invoke", **params, payload={"model": "m", "prompt": prompt}
                )
                made = reply.result["payload"]
                assert not [value for value in planter.values if value in json.dumps(made)]
                assert made["prompt"]["id"] == "pmpt_1" and made["prompt"]["variables"]["city"] == "Bern"


async def test_an_end_users_digest_is_the_same_in_all_scopes_and_another_in_each_tenant(tmp_path) -> None:
    params = {"name": "pii_redaction", "event": "llm/completion", "phase": "request"}
    payload = {"messages": [{"role": "user", "content": "Hello"}], "user": "customer-4711"}
    digests: dict[str, set[str]] = {}
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, app):
        access = app.state.services.access
        await app.state.services.tenants.create(HOST, "globex")
        for tenant in ("default", "globex"):
            key = (await access.create_key(HOST, [Role.INVOKER], tenant=tenant)).key
            for revision in REVISIONS:
                async with client(url, revision, str(key)) as wire:
                    for config in ({}, {"scope": "one"}, {"scope": f"two-{revision}"}):
                        reply = await wire.call(
                            "interceptor/invoke", **params, payload=payload, config=config
                        )
                        digests.setdefault(tenant, set()).add(reply.result["payload"]["user"])
    [ours], [theirs] = digests["default"], digests["globex"]
    assert ours != theirs and "4711" not in ours + theirs
    assert ours.startswith("user_") and theirs.startswith("user_")
