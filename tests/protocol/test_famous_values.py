"""The values that everybody tries first leave no door in clear, however they are written."""

import json
import re
from collections.abc import Callable
from typing import Any

import httpx2

from tests.famous_values import CONTROLS, Written, everything, harmless
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client
from tests.sampling import WHOLE, sample

HANDLE = re.compile(r"\[([A-Z]+(?:_[A-Z]+)*)_\d+\]")
NUMBERED = {"CARD", "SSN", "EMAIL", "IBAN", "PHONE"}
BATCH = 40


def message(text: str, role: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def arguments(text: str, _role: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": "c",
        "name": "file",
        "arguments": json.dumps({"remark": text}),
    }


def result(text: str, role: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": text}]}
    return {"role": role, "content": [block]}


SHAPES: dict[Callable[[str, str], dict[str, Any]], Callable[[Any], str]] = {
    message: lambda item: str(item["content"]),
    arguments: lambda item: str(json.loads(item["arguments"])["remark"]),
    result: lambda item: str(item["content"][0]["content"][0]["text"]),
}


async def redacted(door: str, url: str, context: list[Any]) -> list[Any]:
    if door != "rest":
        async with client(url, door, str(KEY)) as wire:
            content: list[Any] = (await wire.invoke(*context, name="pii_redaction")).result["content"]
            return content
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
        path = url.removesuffix("/mcp") + "/api/v1/middleware/pii_redaction/invoke"
        response = await http.post(path, json={"context": context})
        response.raise_for_status()
        answered: list[Any] = response.json()["content"]
        return answered


async def shown(door: str, url: str, texts: list[str], first: int) -> list[str]:
    """Return what a door makes of texts, each in an item of its own, in the shapes in turn."""
    after: list[str] = []
    shapes = list(SHAPES)
    for start in range(0, len(texts), BATCH):
        # Texts of one role that follow each other are also read as one.
        turns = [
            (shapes[(first + number) % len(shapes)], text)
            for number, text in enumerate(texts[start : start + BATCH])
        ]
        roles = ["user", "assistant"] * len(turns)
        context = [shape(text, role) for (shape, text), role in zip(turns, roles, strict=False)]
        answers = await redacted(door, url, context)
        after += [SHAPES[shape](item) for (shape, _), item in zip(turns, answers, strict=True)]
    return after


def letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def stays(written: Written, after: str) -> bool:
    """Return whether more of the value is left than a sign here and there."""
    around = letters(written.place.replace("{}", "") + written.around)
    most = max(4, 0.3 * letters(written.spelled))
    return after == written.text or letters(HANDLE.sub("", after)) - around > most


async def test_no_door_lets_a_famous_value_through_in_any_spelling(tmp_path: Any) -> None:
    values = everything()
    assert len(values) > 3_000
    plain = list(harmless())
    async with service(f"sqlite:///{tmp_path}/sluice.db", warm=True) as (url, _):
        for number, door in enumerate(("rest", HANDSHAKE, MODERN)):
            for first in range(len(SHAPES) if WHOLE else 1):
                chosen = values if WHOLE else sample(f"famous values {door}", values, 240)
                after = await shown(door, url, [one.text for one in chosen], number + first)
                assert [
                    (one.name, text) for one, text in zip(chosen, after, strict=True) if stays(one, text)
                ] == []
            calm = await shown(door, url, [one.text for one in plain], number)
            kinds = [{*HANDLE.findall(text)} & NUMBERED for text in calm]
            assert [(one.name, kind) for one, kind in zip(plain, kinds, strict=True) if kind] == []
            unchanged = sum(one.text == text for one, text in zip(plain, calm, strict=True))
            assert unchanged >= len(plain) - len(CONTROLS)
