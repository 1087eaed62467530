"""What a prefix of a conversation becomes stays as it is, over turns, processes and new starts."""

import json
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from app.core.access import Caller
from app.core.content.context import Context
from app.core.contracts.engines import Span
from app.core.contracts.middleware import Outcome, VaultOptions
from app.core.contracts.policy import Policy
from app.core.gateway.families import anthropic_messages, openai_chat
from app.core.gateway.json_body import JsonBody
from app.core.gateway.member_table import LeafRole
from app.core.gateway.requests import GatewayRequest
from app.core.redaction.redaction import conceal_edits
from app.core.request import RequestInfo
from app.services.gateway.egress import checked
from app.services.gateway.request_vaults import RequestVault
from app.services.gateway.scopes import ScopeHints, ScopeRules
from app.services.invoke.calls import MiddlewareCall
from app.services.invoke.outcomes import OutcomeRecorder
from app.store.database import Database
from tests.integration.test_gateway_scopes import Gateway, serving, user
from tests.sampling import SEED, WHOLE, examples

FIRST = ("Ada", "Bo", "Chloé", "Dmitri", "Emeka", "Fumiko", "Gül", "Héctor", "Ingrid", "João")
LAST = ("Lovelace", "Okafor", "Müller", "Żak", "O'Neil", "Tanaka", "Sørensen", "Ibáñez", "Kaya", "Smith")
FIXED = frozenset({LeafRole.MACHINE, LeafRole.SIGNED})


class NoMasker:
    """Stands in for irreversible replacements, which these conversations have none of."""

    async def apply_operator(
        self, mode: str, items: Sequence[tuple[str, str]], key: bytes | None = None
    ) -> list[str]:
        """Refuse to be called."""
        raise AssertionError((mode, len(items), key))


def common_prefix(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return how many elements two lists begin with alike."""
    alike = (one == other for one, other in zip(first, second, strict=False))
    return next((number for number, same in enumerate(alike) if not same), min(len(first), len(second)))


def names_of(chance: random.Random, count: int) -> list[str]:
    """Return different names."""
    return chance.sample([f"{first} {last}" for first in FIRST for last in LAST], count)


def said(chance: random.Random, names: Sequence[str]) -> str:
    """Return a text that speaks of some of ``names``, and sometimes of what looks like a handle."""
    words = [
        chance.choice(("the order of", "ask", "\u201cdear\u201d\n", "and", "{", "cc:", "é")) for _ in range(4)
    ]
    words += [chance.choice(names) for _ in range(chance.randrange(3))]
    if chance.random() < 0.2:
        words.append(f"[PERSON_{chance.randrange(1, 6)}]")
    chance.shuffle(words)
    return " ".join(words)


def turn_of(chance: random.Random, names: Sequence[str], number: int) -> list[dict[str, Any]]:
    """Return the messages of one turn; some call a tool."""
    turn: list[dict[str, Any]] = [{"role": "user", "content": said(chance, names)}]
    if chance.random() < 0.4:
        arguments = json.dumps(
            {"to": chance.choice(names), "note": said(chance, names)}, ensure_ascii=chance.random() < 0.5
        )
        function = {"name": "crm__find", "arguments": arguments}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        turn += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "content": json.dumps({"name": chance.choice(names)}),
            },
        ]
    return [*turn, {"role": "assistant", "content": said(chance, names)}]


async def sent(
    gateway: Gateway,
    caller: Caller,
    body: dict[str, Any],
    detected: Sequence[str],
    table: Any = openai_chat.REQUEST,
) -> tuple[RequestVault, bytes]:
    """Return the vault of a request, and the bytes that leave, with ``detected`` as all that a detector finds."""
    request = GatewayRequest.read(JsonBody.parse(json.dumps(body).encode()), table)
    texts = [leaf.leaf.text for leaf in request.leaves()]
    scope = await gateway.scopes.find(caller, ScopeHints(sessions=[str(body["metadata"]["s"])]), ScopeRules())
    vault = await gateway.requests.open(caller, scope, lambda: texts, Policy().secrets)
    context = Context.parse(request.items)
    for leaf in context.leaves:
        spans = [
            Span(at, at + len(name), "PERSON", 1.0)
            for name in detected
            for at in range(len(leaf.text))
            if leaf.text.startswith(name, at)
        ]
        context = context.edited(conceal_edits(leaf, spans, handles="keep"))
    call = MiddlewareCall(
        gateway.vault.audit, caller, RequestInfo("req", None, None, math.inf), "middleware.invoke"
    )
    recorder = OutcomeRecorder(vault, gateway.vault.audit, NoMasker())
    outcome = Outcome(context, vault=VaultOptions(scope=scope.name, conceals=True))
    answer = await recorder.stored(outcome, Policy(), call)
    request = request.changed(answer.content)
    paths = {leaf.path for leaf in request.leaves() if leaf.role not in FIXED}
    result = await checked(vault, request.to_bytes(), lambda: paths)
    return vault, request.replaced(result.replaced).to_bytes()


@pytest.mark.parametrize("number", range(examples(1000, 5)))
async def test_a_prefix_leaves_as_it_left_before(database: Database, tenant: str, number: int) -> None:
    chance = random.Random(f"{SEED} prefix {number}")
    names = names_of(chance, 8)
    caller = user(tenant, f"user {number}")
    head = {"model": "m", "stream": True, "metadata": {"s": number}}
    messages: list[dict[str, Any]] = [{"role": "system", "content": said(chance, names)}]
    before: tuple[list[Any], list[Any], bytes] = ([], [], b"")
    async with serving(database) as first, serving(database) as second:
        for turn in range(30 if WHOLE else 6):
            appended = turn_of(chance, names, turn)
            edited = turn > 1 and chance.random() < 0.2
            messages = (
                [*messages[:-1], {"role": "user", "content": said(chance, names)}] if edited else messages
            )
            messages = [*messages, *appended]
            gateway = chance.choice((first, second))
            _, left = await sent(gateway, caller, {**head, "messages": messages}, names)
            assert not any(name in left.decode() for name in names)
            forms = json.loads(left)["messages"]
            same = common_prefix(before[0], messages)
            assert forms[:same] == before[1][:same]
            if not edited:
                assert left.startswith(before[2][: -len(b"]}")])
            before = messages, forms, left
        async with serving(database) as restarted:
            assert (await sent(restarted, caller, {**head, "messages": messages}, names))[1] == before[2]


async def test_a_value_that_is_detected_late_changes_the_earlier_text_once(
    database: Database, tenant: str
) -> None:
    ada, head = user(tenant, "ada"), {"model": "m", "max_tokens": 9, "metadata": {"s": "s"}}
    table = anthropic_messages.REQUEST
    turns = ["Write to Ada Lovelace", "I mean Ada Lovelace.", "Thanks."]
    seen: list[list[str]] = []
    counts: list[int] = []
    async with serving(database) as gateway:
        for end, detected in ((1, ()), (2, ("Ada Lovelace",)), (3, ())):
            messages = [{"role": "user", "content": text} for text in turns[:end]]
            vault, left = await sent(gateway, ada, {**head, "messages": messages}, detected, table)
            seen.append([message["content"] for message in json.loads(left)["messages"]])
            counts.append(vault.count_changed(turns[:end], seen[-1]))
    assert seen == [
        ["Write to Ada Lovelace"],
        ["Write to [PERSON_1]", "I mean [PERSON_1]."],
        ["Write to [PERSON_1]", "I mean [PERSON_1].", "Thanks."],
    ]
    assert counts == [0, 1, 0]
