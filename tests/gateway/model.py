"""A model that calls tools, thinks, cites and fills schemas, the same in each shape of an API.

It looks at nothing but what arrived, and refuses what the real APIs refuse: calls without a result, arguments that are
no JSON, signatures over another text, members that are missing.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.gateway.provider import Provider

SAYS = re.compile(r"I am (.+?), write to (\S+); my account is (.+?)\.(?=\s|$)")
_SECRET = b"of the provider alone"


class RefusedError(Exception):
    """What a real API answers with 400."""


@dataclass(frozen=True)
class Facts:
    """Who the user is, as the model sees it: originals without a gateway, handles with one."""

    name: str
    email: str
    account: str


@dataclass(frozen=True)
class Reply:
    """What the model does next: it calls tools, or says something. ``thought`` comes before it."""

    thought: str
    text: str = ""
    calls: Sequence[dict[str, Any]] = ()


def facts_of(text: str) -> Facts:
    """Return what the last sentence of its kind in ``text`` says of the user."""
    said = SAYS.findall(text)
    return Facts(*said[-1]) if said else Facts("nobody", "nowhere", "none")


def reply(text: str, results: Sequence[str], *, tools: bool) -> Reply:
    """Return the next step of a turn in which the user said ``text`` and tools returned ``results``."""
    facts = facts_of(text)
    thought = f"The user is {facts.name}; the account {facts.account} is theirs."
    turn = re.match(r"Turn (\d+):", text)
    if tools and turn and not results:
        numbers = (2 * int(turn[1]), 2 * int(turn[1]) + 1)
        return Reply(thought, calls=[arguments_of(facts, number) for number in numbers])
    if results:
        return Reply(thought, f"Here it is, {facts.name}: {' / '.join(results)} I wrote to {facts.email}.")
    return Reply(thought, f"You said: {text}")


def arguments_of(facts: Facts, number: int) -> dict[str, Any]:
    """Return arguments of the tool, with originals beside what JSON escapes."""
    note = f'"{facts.name}" said:\n\tmy account is {facts.account} \\ größer 🙂'
    return {"number": number, "name": facts.name, "email": facts.email, "note": note}


def filled(schema: dict[str, Any], facts: Facts, root: dict[str, Any] | None = None) -> Any:
    """Return a value of a JSON Schema with what is said of the user in its texts."""
    root = root or schema
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return filled(target, facts, root)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return filled(schema[choice][0], facts, root)
    if "properties" in schema:
        return {
            name: getattr(facts, name, None) or filled(part, facts, root)
            for name, part in schema["properties"].items()
        }
    if schema.get("type") == "array":
        return [filled(schema["items"], facts, root)]
    return 7 if schema.get("type") in {"integer", "number"} else f"{facts.name}, {facts.email}"


def signature_of(text: str) -> str:
    """Return what only the provider can write over ``text``."""
    return hmac.new(_SECRET, text.encode(), hashlib.sha256).hexdigest()


def demand(holds: object, message: str) -> None:
    """Refuse a request where ``holds`` is not true."""
    if not holds:
        raise RefusedError(message)


def demand_answered(calls: Sequence[str], results: Sequence[str]) -> None:
    """Refuse a conversation in which a call has no result, or a result no call."""
    demand(sorted(calls) == sorted(results), f"calls {calls} were answered by results {results}")


def demand_json(text: Any) -> None:
    """Refuse arguments that are no JSON object."""
    try:
        demand(isinstance(json.loads(text), dict), "arguments are no object")
    except (TypeError, ValueError) as error:
        raise RefusedError(f"arguments are no JSON: {error}") from error


@dataclass
class Model:
    """Answers for a provider. ``refused`` is what it answered with 400, for the test to show."""

    provider: Provider
    refused: list[str] = field(default_factory=list)
    number: int = 0
    kept: dict[str, list[Any]] = field(default_factory=dict)
    signed: dict[str, Any] = field(default_factory=dict)

    async def __call__(self, request: web.Request, value: Any) -> web.StreamResponse | None:
        """Answer a request, or leave it to the provider's usual answers."""
        from tests.gateway import model_anthropic, model_openai

        answers = {
            "/v1/chat/completions": model_openai.chat,
            "/v1/responses": model_openai.response,
            "/a/v1/messages": model_anthropic.message,
        }
        answer = answers.get(request.path)
        if answer is None or request.method != "POST":
            return None
        self.number += 1
        try:
            return await answer(self, request, value)
        except RefusedError as error:
            self.refused.append(f"{request.path}: {error}")
            problem = {"type": "invalid_request_error", "message": str(error)}
            return web.json_response({"type": "error", "error": problem}, status=400)

    def id(self, prefix: str) -> str:
        """Return an id that is the same in each run of the same conversation."""
        return f"{prefix}_{self.number:06d}"
