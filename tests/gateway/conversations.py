"""Conversations of ten turns that clients have with the model of the tests, and what must come of them.

A client is a program: it reads a plan as JSON from its standard input, has the conversation through the address that
the plan names, and writes what it saw as JSON to its standard output.
"""

import json
import random
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, unquote_plus

from tests.artefacts import environment
from tests.gateway.conftest import Gateway
from tests.gateway.model import Model, facts_of, reply
from tests.gateway.provider import KEY, Arrived
from tests.planting import Planter
from tests.sampling import SEED

LIMIT_S = 240
_FIRST = (
    "Ottilie",
    "Søren",
    "Bertha",
    "Chloé",
    "Wolfgang",
    "Ingrid",
    "Matthias",
    "Giulia",
    "Henrik",
    "Margarethe",
)
_LAST = (
    "Brandstätter",
    "Kierkegaard",
    "Müller",
    "Lefèvre",
    "Obermüller",
    "Sørensen",
    "Großmann",
    "Bianchi",
    "Åkesson",
)
_MACHINE_FORM = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Plan:
    """What a client is to say, and what its tool returns, by the number in the arguments."""

    system: str
    turns: list[str]
    results: list[str]
    tool: dict[str, Any]
    planted: list[str] = field(repr=False)

    def expected(self) -> list[dict[str, Any]]:
        """Return the calls and the answer of each turn, with originals."""
        turns = []
        for number, text in enumerate(self.turns):
            calls = list(reply(text, (), tools=True).calls)
            results = self.results[2 * number : 2 * number + 2]
            turns.append({"calls": calls, "answer": reply(text, results, tools=True).text})
        return turns


def plan(turns: int = 10) -> Plan:
    """Draw a conversation: each turn tells new things of a person, and some of what earlier turns told."""
    draw = random.Random(SEED)
    planter = Planter(draw)
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    draw.shuffle(names)
    said, results = [], []
    for number in range(turns):
        name, mail, account = names[number], _mail(draw, number), _account(draw)
        planter.values += [name, mail, account]
        text = f"Turn {number}: I am {name}, write to {mail}; my account is {account}."
        said.append(f"{text} {planter.text()} {said[0][8:] if number % 3 == 2 else ''}".strip())
        results.append(json.dumps({"customer": planter.json(), "open": [1, 2.5, None], "vip": True}))
        results.append(f'The file says "{planter.text()}"\n\tNothing\\else; {mail} is on record.')
    tool = {
        "name": "find_customer",
        "description": "Find a customer by name and mail address.",
        "parameters": {
            "type": "object",
            "properties": {
                "number": {"type": "integer"},
                **{name: {"type": "string"} for name in ("name", "email", "note")},
            },
            "required": ["number", "name", "email", "note"],
            "additionalProperties": False,
        },
    }
    system = f"You work for the bank. Your supervisor can be reached at {_mail(draw, turns)}."
    planter.values.append(system.rpartition(" ")[2].rstrip("."))
    return Plan(system, said, results, tool, planter.values)


def _mail(draw: random.Random, number: int) -> str:
    return f"person{number}.{draw.randrange(10**6)}@kunde.example.de"


def _account(draw: random.Random) -> str:
    digits = f"{draw.randrange(10**18):018d}"
    return f"DE{98 - int(f'{digits}131400') % 97:02d}{digits}"


@dataclass(frozen=True)
class Had:
    """A conversation as the client saw it, and the requests that it led to."""

    saw: dict[str, Any]
    requests: list[Arrived]


def had(
    gateway: Gateway, command: Sequence[str], asked: Plan, *, direct: bool = False, **options: Any
) -> Had:
    """Run a client through the gateway, or straight to the provider."""
    behind = gateway.provider
    behind.arrived.clear()
    behind.answer = model = Model(behind)
    openai, anthropic = (f"{behind.url}/v1", f"{behind.url}/a")
    if not direct:
        openai, anthropic = f"{gateway.service.url}/openai/v1", f"{gateway.service.url}/anthropic"
    given = {**asdict(asked), "openai": openai, "anthropic": anthropic, **options}
    given |= {"key": KEY if direct else gateway.key}
    done = subprocess.run(
        list(command),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env=environment(LANGSMITH_TRACING="false", DO_NOT_TRACK="1", LITELLM_LOCAL_MODEL_COST_MAP="True"),
    )
    refused = "\n".join(model.refused)
    assert done.returncode == 0, f"{refused}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    assert not model.refused, refused
    return Had(json.loads(done.stdout.splitlines()[-1]), list(behind.arrived))


def assert_nothing_arrived(gateway: Gateway, requests: Sequence[Arrived], values: Iterable[str]) -> None:
    """Look for each value, and the key of the caller, in all that the provider got."""
    assert requests
    assert not values_in(requests, [*values, gateway.key])


def values_in(requests: Sequence[Arrived], values: Iterable[str]) -> list[str]:
    """Return which values the provider got, in any spelling."""
    readings = [*_readings(requests)]
    machine = [_MACHINE_FORM.sub("", reading).casefold() for reading in readings]
    return [
        value
        for value in values
        if any(value in reading for reading in readings)
        or any(_MACHINE_FORM.sub("", value).casefold() in reading for reading in machine)
    ]


def _readings(requests: Sequence[Arrived]) -> Iterator[str]:
    """Yield the bytes of all requests as text, with one layer after the other of escapes taken off."""
    text = "\n".join(
        f"{request.path}\n{json.dumps(request.headers)}\n{request.body.decode()}" for request in requests
    )
    yield unquote(text)
    yield unquote_plus(text)
    for _ in range(5):
        yield text
        text = _unescaped(text)


def _unescaped(text: str) -> str:
    return re.sub(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])', lambda escape: _character(escape[1]), text)


def _character(escape: str) -> str:
    return json.loads(f'"\\{escape}"') if escape[0] != "u" else chr(int(escape[1:], 16))


def assert_prefixes_stay(through: Sequence[Arrived], straight: Sequence[Arrived]) -> None:
    """Demand that whatever the client left as it was between two requests is left so on the way, too."""
    assert len(through) == len(straight)
    for one, other in zip(pairwise(through), pairwise(straight), strict=True):
        (earlier, later), (was, became) = ([_turns(each) for each in pair] for pair in (one, other))
        if became[: len(was)] == was:
            assert later[: len(earlier)] == earlier


def _turns(request: Arrived) -> list[Any]:
    """Return what was said, without marks for the cache, which clients move."""
    value = json.loads(request.body) if request.body else {}
    said = value.get("messages") or value.get("input") or []
    written = json.dumps(said, sort_keys=True).replace(', "cache_control": {"type": "ephemeral"}', "")
    return list(json.loads(written)) if isinstance(said, list) else [said]


def assert_same(through: Had, straight: Had, asked: Plan) -> None:
    """Demand that a client sees through the gateway what it sees without one, and that this is what was planned."""
    turns = straight.saw["turns"]
    seen = [{name: turn[name] for name in ("calls", "answer")} for turn in turns]
    unplanned = [*differences(seen, asked.expected())]
    assert not unplanned, unplanned[:20]
    different = [*differences(through.saw, straight.saw)]
    assert not different, different[:20]
    assert facts_of(asked.turns[0]).name in json.dumps(through.saw, ensure_ascii=False)


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield where two JSON values differ, for a message that fits a screen."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {one!r} is not {other!r}"
