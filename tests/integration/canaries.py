"""Two hundred values that must never be found again, and the search for them in every spelling."""

import base64
import json
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

COUNT = 200
_DRAW = random.Random(20_261_120)
_LETTERS = "bcdfghjklmnpqrstvwxz"


def _word(length: int = 9) -> str:
    return "".join(_DRAW.choices(_LETTERS, k=length))


def _digits(length: int) -> str:
    return "".join(_DRAW.choices("123456789", k=length))


KINDS: dict[str, Callable[[], str]] = {
    "name": lambda: f"{_word(6).title()} {_word(9).title()}",
    "address": lambda: f"{_digits(4)} {_word().title()} Street, {_word(7).title()}, TX {_digits(5)}",
    "date": lambda: f"born on the 3rd of {_word(8)} {_digits(4)}",
    "phone": lambda: f"+1-{_digits(3)}-{_digits(3)}-{_digits(4)}",
    "fax": lambda: f"fax ({_digits(3)}) {_digits(3)}-{_digits(4)}",
    "e-mail": lambda: f"{_word()}.{_word(5)}@{_word(6)}.example.com",
    "social security": lambda: f"{_digits(3)}-{_digits(2)}-{_digits(4)}",
    "medical record": lambda: f"MRN {_digits(10)}",
    "health plan": lambda: f"plan {_word(3).upper()}{_digits(9)}",
    "account": lambda: f"account {_digits(12)}",
    "licence": lambda: f"licence {_word(2).upper()}{_digits(8)}",
    "vehicle": lambda: f"VIN 1{_word(4).upper()}{_digits(12)}",
    "device": lambda: f"serial {_word(4).upper()}-{_digits(9)}",
    "url": lambda: f"https://{_word()}.example.org/{_word()}",
    "ip": lambda: f"2001:db8:{_digits(4)}:{_digits(4)}::{_digits(4)}",
    "biometric": lambda: f"fingerprint {_word(16)}",
    "photograph": lambda: f"photo {_word(12)}.jpg",
    "other": lambda: f"{_word(8)}_{_digits(8)} José Łukasz",
}
"""One maker per identifier class of the HIPAA safe harbour rule (45 CFR 164.514(b)(2))."""

CANARIES: tuple[str, ...] = tuple(list(KINDS.values())[number % len(KINDS)]() for number in range(COUNT))


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": f"Please note: {value}."}


POSITIONS: dict[str, Callable[[str], Any]] = {
    "text": _text,
    "text _meta": lambda v: {**_text("x"), "_meta": {"a": v}, "annotations": {"b": [v]}},
    "text unknown field": lambda v: {**_text("x"), "extra": v},
    "image data": lambda v: {"type": "image", "data": _b64(v), "mimeType": "image/png"},
    "audio data": lambda v: {"type": "audio", "data": _b64(v), "mimeType": "audio/wav", "_meta": {"x": v}},
    "link": lambda v: {
        "type": "resource_link",
        "uri": f"file:///{_b64(v)}",
        "name": v,
        "title": v,
        "description": v,
    },
    "resource text": lambda v: {"type": "resource", "resource": {"uri": "a:b", "text": v}},
    "resource uri": lambda v: {"type": "resource", "resource": {"uri": f"a:{v}", "text": "x"}},
    "resource blob": lambda v: {
        "type": "resource",
        "resource": {"uri": "a:b", "mimeType": "application/json", "blob": _b64(json.dumps({"v": v}))},
    },
    "resource binary": lambda v: {
        "type": "resource",
        "resource": {"uri": "a:b", "mimeType": "application/pdf", "blob": _b64(v)},
    },
    "tool input": lambda v: {
        "type": "tool_use",
        "id": "1",
        "name": "send",
        "input": {"a": [{"b": {"c": v}}], v: 1},
    },
    "tool result text": lambda v: {"type": "tool_result", "toolUseId": "1", "content": v},
    "tool result blocks": lambda v: {"type": "tool_result", "toolUseId": "1", "content": [_text(v)]},
    "structured": lambda v: {
        "type": "tool_result",
        "toolUseId": "1",
        "content": [],
        "structuredContent": {"deep": [[{"x": v}]], v: {v: v}},
    },
    "message string": lambda v: {"role": "user", "content": f"I am {v}."},
    "message block": lambda v: {"role": "assistant", "content": _text(v)},
    "message blocks": lambda v: {"type": "message", "role": "user", "content": [_text(v), _text("x")]},
    "message id": lambda v: {"role": "user", "content": "x", "id": v, "name": v},
    "json in a string": lambda v: _text(json.dumps({"outer": json.dumps({"inner": v})})),
    "unknown type": lambda v: {"type": "hologram", "payload": {"x": [v]}, v: v},
    "signed reasoning": lambda v: {"type": "thinking", "thinking": v, "signature": _b64(v)},
    "role": lambda v: {"role": v, "content": "x"},
    "type": lambda v: {"type": v, "text": v},
    "no object": lambda v: v,
    "text of a wrong type": lambda v: {"type": "text", "text": {"x": v}},
}
"""Where a value can stand in a context item, well-formed and not."""

ARGUMENTS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "deny list": lambda v: ("pii_redaction", {"deny_list": [v]}),
    "allow list": lambda v: ("pii_redaction", {"allow_list": [v]}),
    "mapping": lambda v: ("pii_restoration", {"redactions": {"PERSON_1": v}}),
    "unknown entity": lambda v: ("pii_redaction", {"entities": [v]}),
    "unknown argument": lambda v: ("pii_redaction", {v: 1}),
    "wrong mode": lambda v: ("pii_redaction", {"mode": v}),
    "mode by type": lambda v: ("pii_redaction", {"mode": {v: "mask"}}),
    "wrong flag": lambda v: ("pii_redaction", {"strict": v}),
    "time zone": lambda v: ("timestamp_injector", {"timezone": v}),
    "wrong scope": lambda v: ("pii_redaction", {"scope": f"{v}\n"}),
    "middleware name": lambda v: (_b64(v).lower().replace("=", "").replace("+", "a").replace("/", "b"), {}),
}

BROKEN: dict[str, Callable[[str], bytes]] = {
    "unclosed": lambda v: f'{{"context":["{v}'.encode(),
    "duplicate": lambda v: f'{{"{v}":1,"{v}":2}}'.encode(),
    "surrogate": lambda v: f'{{"context":["{v}\\ud83d"]}}'.encode(),
    "NUL": lambda v: f'{{"context":["{v}\\u0000"]}}'.encode(),
    "latin-1": lambda v: f'{{"context":["{v}'.encode() + b'\xff"]}',
    "unknown member": lambda v: json.dumps({v: v, "context": []}).encode(),
    "context text": lambda v: json.dumps({"context": v}).encode(),
    "arguments text": lambda v: json.dumps({"arguments": v, "context": []}).encode(),
    "bare": lambda v: json.dumps(v).encode(),
}


def spellings(value: str) -> Iterator[bytes]:
    """Yield the forms in which ``value`` could lie around: encodings, JSON escapes, base64 at each offset."""
    plain = value.encode()
    yield plain
    yield value.lower().encode()
    yield value.encode("utf-16-le")
    yield json.dumps(value)[1:-1].encode()
    yield plain.hex().encode()
    yield repr(plain)[2:-1].encode()
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + plain)
        inner = encoded[4 if offset else 0 : -4]
        yield inner
        yield inner.replace(b"+", b"-").replace(b"/", b"_")


def hits(haystacks: Iterable[tuple[str, bytes]], values: Iterable[str] = CANARIES) -> list[str]:
    """Return where which value was found; an empty list is what is hoped for."""
    wanted = [(value, {form for form in spellings(value) if len(form) > 5}) for value in values]
    found = []
    for place, data in haystacks:
        for value, forms in wanted:
            if any(form in data for form in forms):
                found.append(f"{place}: {value}")
    return found


def files_of(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file below ``directory``: databases, their logs, whatever else was written."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()
