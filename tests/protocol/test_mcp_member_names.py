"""The name of a member is context for its value, over both doors: named values are hidden, ordinary ones stay."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.pii_member_names import MEASURED, MISTYPED, NESTED, ORDINARY, SPLIT, TELLING
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, Wire, client

HANDLE = re.compile(r"\[[A-Z_]+_[0-9]+\]")
Items = list[dict[str, Any]]
SHORT = 5
BESIDE_VALUES = {"call", "ssn", "tool", "find", "None", "text"}
"""Short leaves of the items that are no parts of a value."""

PLACES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "arguments of a tool": lambda value: {"type": "tool_use", "id": "call", "name": "find", "input": value},
    "structured content": lambda value: {"type": "tool_result", "content": [], "structuredContent": value},
    "a result without blocks": lambda value: {"role": "tool", "tool_call_id": "call", "content": value},
    "JSON in a text": lambda value: {"type": "text", "text": json.dumps(value)},
    "JSON in a string of JSON": lambda value: {
        "type": "text",
        "text": json.dumps({"body": json.dumps(value)}),
    },
    "arguments of a completion": lambda value: {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call", "type": "function", "function": {"name": "find", "arguments": json.dumps(value)}}
        ],
    },
    "a resource": lambda value: {
        "type": "resource",
        "resource": {"uri": "file:///a.json", "mimeType": "application/json", "text": json.dumps(value)},
    },
}


class Doors:
    """One service behind REST and both revisions of MCP."""

    def __init__(self, url: str, wires: list[Wire]) -> None:
        self.wires = wires
        self.rest = url.removesuffix("/mcp") + "/api/v1"

    async def each(self, name: str, items: Items, **arguments: Any) -> list[dict[str, Any]]:
        """Return the answers of all doors to the same call."""
        answers = [(await wire.invoke(*items, name=name, arguments=arguments)).result for wire in self.wires]
        body = {"context": items, "arguments": arguments}
        return [*answers, await self.post(f"/middleware/{name}/invoke", body)]

    async def post(self, path: str, body: Any) -> Any:
        headers = {"authorization": f"Bearer {KEY}"}
        answer = await self.wires[0].http.post(self.rest + path, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def doors(directory: Any) -> AsyncIterator[Doors]:
    async with (
        service(f"sqlite:///{directory}/sluice.db", warm=True) as (url, _),
        client(url, REVISIONS[0], str(KEY)) as first,
        client(url, REVISIONS[1], str(KEY)) as second,
    ):
        yield Doors(url, [first, second])


def leaves(value: Any) -> list[Any]:
    """Return everything at the ends of a JSON value; JSON in strings is opened."""
    if isinstance(value, dict | list):
        return [
            leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in leaves(part)
        ]
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return leaves(json.loads(value))
        except ValueError:
            return [value]
    return [value]


async def test_values_are_hidden_by_the_names_of_their_members_and_ordinary_values_stay(tmp_path) -> None:
    contents: list[Any] = [TELLING, ORDINARY, *(value for value, _ in NESTED)]
    items = [place(value) for place in PLACES.values() for value in contents]
    async with doors(tmp_path) as opened:
        for answer in await opened.each("pii_redaction", items):
            assert "reported" not in answer["metadata"]
            for number, (item, done) in enumerate(zip(items, answer["content"], strict=True)):
                which = number % len(contents)
                if which == 0:
                    shown = [leaf for leaf in leaves(done) if leaf in TELLING.values()]
                    assert not shown, (item, shown)
                elif which == 1:
                    assert done == item
                else:
                    assert NESTED[which - 2][1] not in leaves(done), (item, done)


async def test_a_name_decides_whatever_the_check_digit_says_but_text_keeps_such_numbers(tmp_path) -> None:
    items = [place(value) for place in PLACES.values() for value in (MISTYPED, MEASURED)]
    written = [
        {"type": "text", "text": f"Our build {value} of today."}
        for value in map(MISTYPED.get, ("pesel", "cpf", "card_number"))
    ]
    async with doors(tmp_path) as opened:
        for answer in await opened.each("pii_redaction", items):
            for item, done in zip(items, answer["content"], strict=True):
                assert not set(MISTYPED.values()) & set(leaves(done)), item
            assert [*answer["content"][1::2]] == items[1::2]
        for answer in await opened.each("pii_redaction", written):
            assert answer["content"] == written
        [first, *_] = items
        for answer in await opened.each("pii_redaction", [first], exclude=["pesel", "card"]):
            shown = leaves(answer["content"][0])
            assert {MISTYPED["pesel"], MISTYPED["card_number"]} <= set(shown)
            assert MISTYPED["cpf"] not in shown


async def test_a_value_that_is_split_over_a_list_is_hidden_and_comes_back(tmp_path) -> None:
    split = [place(value) for place in PLACES.values() for value in SPLIT]
    async with doors(tmp_path) as opened:
        for answer in await opened.each("pii_redaction", split, scope="split"):
            for item, done in zip(split, answer["content"], strict=True):
                shown = {str(leaf) for leaf in leaves(done) if len(str(leaf)) < SHORT}
                assert shown <= BESIDE_VALUES, (item, done)
        for back in await opened.each("pii_restoration", answer["content"], scope="split", positions="all"):
            assert [[*map(str, leaves(item))] for item in back["content"]] == [
                [*map(str, leaves(item))] for item in split
            ]


async def test_the_name_of_a_member_tells_the_type_and_a_secret_number_is_hidden(tmp_path) -> None:
    item = PLACES["structured content"]({"ssn": 412689937, "sin": 412689937, "text": "SSN"})
    secrets = {"pin": 9037, "db_password": 12345678, "otp": 551204, "api_key": 918273645546372}
    calm = {
        "pin_count": 12044,
        "token": 55512345,
        "key": 87654320,
        "password_length": 1204,
        "passwords": 12044,
    }
    held = [place(secrets | calm) for place in PLACES.values()]
    async with doors(tmp_path) as opened:
        for answer in await opened.each("pii_redaction", [item]):
            done = answer["content"][0]["structuredContent"]
            assert done["ssn"].startswith("[SSN_") and done["sin"].startswith("[SIN_")
        for answer in await opened.each("secret_redaction", held, scope="keys"):
            for hidden in answer["content"]:
                shown = leaves(hidden)
                assert not set(secrets.values()) & {leaf for leaf in shown if isinstance(leaf, int)}
                assert set(calm.values()) <= {leaf for leaf in shown if isinstance(leaf, int)}
        for answer in await opened.each("secret_redaction", held, numbers="report"):
            assert answer["content"] == held
            assert sum(entry["count"] for entry in answer["metadata"]["reported"]) == len(held) * len(secrets)


async def test_a_number_becomes_its_handle_and_comes_back_as_a_string(tmp_path) -> None:
    data = {"ssn": 412689937, "big": 10**29 + 7, "ratio": 0.1, "lat": 41.924871}
    item = PLACES["arguments of a tool"](data)
    async with doors(tmp_path) as opened:
        for number, answer in enumerate(await opened.each("pii_redaction", [item], scope="numbers")):
            done = answer["content"][0]["input"]
            assert done | {"big": 10**29 + 7, "ratio": 0.1} == done
            assert HANDLE.fullmatch(done["ssn"]) and HANDLE.fullmatch(done["lat"]), number
        text = {"type": "text", "text": json.dumps(done)}
        for answer in await opened.each("pii_restoration", [text], scope="numbers"):
            restored = json.loads(answer["content"][0]["text"])
            assert restored == data | {"ssn": "412689937", "lat": "41.924871"}
        for answer in await opened.each("pii_redaction", [item], numbers="report"):
            assert answer["content"] == [item]
            assert sum(entry["count"] for entry in answer["metadata"]["reported"]) == 2
        for wire in opened.wires:
            refused = await wire.invoke(item, name="pii_redaction", arguments={"numbers": "block"})
            assert refused.error["data"]["code"] == "unscannable_content"
        field = {"type": "text", "text": "hello", "_meta": {"phone": 5128842290}}
        for answer in await opened.each("pii_redaction", [field]):
            assert answer["content"] == [field | {"_meta": {"phone": "[PHONE_1]"}}]
