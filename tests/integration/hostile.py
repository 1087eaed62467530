"""Three hundred requests that nobody should send: malformed, huge, forged, misplaced."""

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

JSON = "application/json"
INVOKE = "/api/v1/middleware/timestamp_injector/invoke"
REDACT = "/api/v1/middleware/pii_redaction/invoke"
RESTORE = "/api/v1/middleware/pii_restoration/invoke"
STREAM = "/api/v1/middleware/pii_restoration/stream"
MCP = "/mcp"
MARK = "Jane-Canary"
"""Stands in most bodies; no answer may repeat it where the request was refused."""


@dataclass(frozen=True)
class Hostile:
    name: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    method: str = "POST"
    refused: bool = True
    """Whether the answer must be a 4xx; otherwise it must only not be a 5xx."""


def _wrapped(inner: bytes) -> bytes:
    return b'{"context":[{"type":"text","text":' + inner + b"}]}"


MALFORMED: dict[str, bytes] = {
    "lone high surrogate": _wrapped(b'"a\\ud83d b"'),
    "lone low surrogate": _wrapped(b'"\\udc00"'),
    "swapped surrogates": _wrapped(b'"\\ude00\\ud83d"'),
    "surrogate in a key": b'{"context":[],"\\ud83d":1}',
    "NUL escape": _wrapped(b'"Jane-Canary\\u0000"'),
    "NUL escape in a key": b'{"context":[],"\\u0000":1}',
    "raw NUL": _wrapped(b'"a\x00b"'),
    "raw control": _wrapped(b'"a\x07b"'),
    "invalid utf-8": _wrapped(b'"\xff\xfe"'),
    "overlong utf-8": _wrapped(b'"\xc0\xaf"'),
    "cut utf-8": _wrapped(b'"\xe2\x82"'),
    "surrogate as utf-8": _wrapped(b'"\xed\xa0\x80"'),
    "utf-16": _wrapped(b'"hi"').decode().encode("utf-16"),
    "utf-32": _wrapped(b'"hi"').decode().encode("utf-32"),
    "byte order mark": b"\xef\xbb\xbf" + _wrapped(b'"hi"'),
    "duplicate key": b'{"context":[{"type":"text","text":"safe","text":"Jane-Canary"}]}',
    "duplicate top key": b'{"context":[],"context":[{"type":"text","text":"Jane-Canary"}]}',
    "NaN": b'{"arguments":{"a":NaN},"context":[]}',
    "Infinity": b'{"arguments":{"a":Infinity},"context":[]}',
    "minus Infinity": b'{"arguments":{"a":-Infinity},"context":[]}',
    "1e400": b'{"arguments":{"a":1e400},"context":[]}',
    "5000 digits": b'{"arguments":{"a":' + b"9" * 5000 + b'},"context":[]}',
    "depth 65": b'{"arguments":{"a":' + b"[" * 64 + b"]" * 64 + b'},"context":[]}',
    "depth 900": b'{"arguments":{"a":' + b"[" * 900 + b"]" * 900 + b'},"context":[]}',
    "depth 200000": b'{"arguments":{"a":' + b"[" * 200_000 + b"]" * 200_000 + b'},"context":[]}',
    "open 200000": b"[" * 200_000,
    "objects 100000": b'{"a":' * 100_000,
    "empty": b"",
    "space": b"   ",
    "trailing comma": b'{"context":[],}',
    "trailing garbage": b'{"context":[]} Jane-Canary',
    "two values": b'{"context":[]}{"context":[]}',
    "single quotes": b"{'context':[]}",
    "unclosed": b'{"context":[{"type":"text","text":"Jane-Canary',
    "comment": b'{"context":[]/* Jane-Canary */}',
    "leading zero": b'{"arguments":{"a":01},"context":[]}',
    "xml": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
    "form": b"context=Jane-Canary",
    "multipart": b'--x\r\nContent-Disposition: form-data; name="context"\r\n\r\nJane-Canary\r\n--x--\r\n',
    "binary": bytes(range(256)),
}

WRONG_VALUES: dict[str, object] = {
    "null": None,
    "true": True,
    "number": 1,
    "string": MARK,
    "array": [],
    "object": {},
    "no context": {"arguments": {}},
    "context null": {"context": None},
    "context object": {"context": {"type": "text", "text": MARK}},
    "context string": {"context": MARK},
    "context of null": {"context": [None]},
    "context of numbers": {"context": [1, 2]},
    "context of strings": {"context": [MARK]},
    "context of lists": {"context": [[MARK]]},
    "text without text": {"context": [{"type": "text"}]},
    "text null": {"context": [{"type": "text", "text": None}]},
    "text number": {"context": [{"type": "text", "text": 12345678901234567890}]},
    "text object": {"context": [{"type": "text", "text": {"a": MARK}}]},
    "type number": {"context": [{"type": 7, "text": MARK}]},
    "image without data": {"context": [{"type": "image"}]},
    "resource null": {"context": [{"type": "resource", "resource": None}]},
    "resource blob not base64": {
        "context": [{"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "blob": "%%%"}}]
    },
    "message without content": {"context": [{"role": "user"}]},
    "message content number": {"context": [{"role": "user", "content": 5}]},
    "tool use input list": {"context": [{"type": "tool_use", "id": "1", "name": "x", "input": [MARK]}]},
    "tool result null": {"context": [{"type": "tool_result", "toolUseId": "1", "content": None}]},
    "arguments null": {"arguments": None, "context": []},
    "arguments list": {"arguments": [MARK], "context": []},
    "arguments string": {"arguments": MARK, "context": []},
    "unknown argument": {"arguments": {MARK: 1}, "context": []},
    "wrong argument type": {"arguments": {"timezone": {"a": [MARK]}, "scope": 5}, "context": []},
    "long argument": {"arguments": {"timezone": MARK * 10_000, "scope": MARK * 10_000}, "context": []},
    "scope path": {"arguments": {"scope": "../../etc/passwd"}, "context": []},
    "scope sql": {"arguments": {"scope": "'; drop table entry; --"}, "context": []},
    "scope newline": {"arguments": {"scope": "a\nb"}, "context": []},
    "unknown member": {"context": [], MARK: 1},
    "5000 blocks": {"context": [{"type": "text", "text": "x"}] * 5000},
    "prototype": {"__proto__": {"a": 1}, "context": []},
}

MUST_REFUSE = frozenset(
    {"null", "true", "number", "string", "array", "object", "no context", "context null", "context object"}
    | {"context string", "arguments null", "arguments list", "arguments string", "unknown argument"}
    | {"unknown member", "5000 blocks", "prototype", "wrong argument type", "long argument"}
)

HEADERS: dict[str, dict[str, str]] = {
    "no type": {"content-type": ""},
    "text/plain": {"content-type": "text/plain"},
    "form type": {"content-type": "application/x-www-form-urlencoded"},
    "multipart type": {"content-type": "multipart/form-data; boundary=x"},
    "json utf-16": {"content-type": "application/json; charset=utf-16"},
    "json-seq": {"content-type": "application/json-seq"},
    "msgpack": {"content-type": "application/msgpack"},
    "foreign host": {"host": "evil.example"},
    "rebinding host": {"host": "127.0.0.1.evil.example"},
    "host with path": {"host": "127.0.0.1/evil"},
    "foreign origin": {"origin": "http://evil.example"},
    "null origin": {"origin": "null"},
    "https origin": {"origin": "https://127.0.0.1"},
    "brotli": {"content-encoding": "br"},
    "two encodings": {"content-encoding": "gzip, gzip"},
    "unknown encoding": {"content-encoding": MARK},
    "no credential": {"authorization": ""},
    "basic credential": {"authorization": "Basic SmFuZTpDYW5hcnk="},
    "unknown key": {"authorization": "Bearer slc_00000000_" + "A" * 43},
    "short key": {"authorization": "Bearer slc_0_A"},
    "long key": {"authorization": "Bearer " + "A" * 8000},
    "credential of spaces": {"authorization": "Bearer ~ ~"},
}

PATHS: tuple[tuple[str, str], ...] = (
    ("POST", "/api/v1/middleware/nothing/invoke"),
    ("POST", "/api/v1/middleware/%00/invoke"),
    ("POST", "/api/v1/middleware/%F0%9F%98%80/invoke"),
    ("POST", "/api/v1/middleware/..%2f..%2fetc/invoke"),
    ("POST", "/api/v1/middleware/" + "a" * 3000 + "/invoke"),
    ("POST", "/api/v1/middleware//invoke"),
    ("PUT", INVOKE),
    ("DELETE", INVOKE),
    ("PATCH", INVOKE),
    ("TRACE", INVOKE),
    ("PROPFIND", INVOKE),
    ("GET", INVOKE),
    ("OPTIONS", INVOKE),
    ("POST", "/api/v1/middleware"),
    ("GET", "/api/v1/vault/scopes/%00"),
    ("GET", "/api/v1/vault/scopes/%ff%fe"),
    ("GET", "/api/v1/vault/scopes/a/entries?originals=maybe"),
    ("GET", "/api/v1/vault/scopes/nothing/entries?originals=true&originals=false"),
    ("GET", "/api/v1/vault/scopes?limit=-1"),
    ("GET", "/api/v1/vault/scopes?limit=99999999999999999999"),
    ("GET", "/api/v1/vault/scopes?cursor=%00"),
    ("DELETE", "/api/v1/vault/scopes/" + "a" * 2000),
    ("DELETE", "/api/v1/vault/scopes/a/entries/%5BPERSON_1"),
    ("DELETE", "/api/v1/vault/scopes/a/entries/PERSON_99999999999999999999999999"),
    ("GET", "/api/v1/vault/scopes/a/entries?cursor=PERSON_99999999999999999999999999"),
    ("GET", "/api/v1/audit/events?limit=0"),
    ("GET", "/api/v1/audit/events?limit=1001"),
    ("GET", "/api/v1/audit/events?limit=Jane-Canary"),
    ("GET", "/api/v1/audit/events?cursor=Jane-Canary"),
    ("GET", "/api/v1/audit/events?cursor=AQ"),
    ("GET", "/api/v1/audit/events?since=Jane-Canary"),
    ("GET", "/api/v1/audit/events?since=2026-01-01T00:00:00"),
    ("GET", "/api/v1/audit/events?since=0001-01-01T00:00:00%2B23:59"),
    ("GET", "/api/v1/audit/events?until=9999-12-31T23:59:59-23:59"),
    ("GET", "/api/v1/audit/events?actor=%00"),
    ("GET", "/api/v1/audit/events?outcome=Jane-Canary"),
    ("GET", "/api/v1/audit/export?format=xlsx"),
    ("GET", "/api/v1/keys/%00"),
    ("DELETE", "/api/v1/keys/zzzzzzzz"),
    ("POST", "/api/v1/keys/zzzzzzzz/rotate"),
    ("GET", "/api/v1/tenants/%00"),
    ("GET", "/api/v1/policies?tenant=%2e%2e"),
    ("GET", "/" + "a" * 7000),
    ("GET", "/%ff%fe"),
    ("GET", "/..%2f..%2fetc/passwd"),
    ("GET", "/api/v1/nothing"),
)

ADMIN: tuple[tuple[str, str], ...] = (
    ("POST", "/api/v1/keys"),
    ("POST", "/api/v1/tenants"),
    ("PUT", "/api/v1/policies"),
    ("POST", "/api/v1/vault/erasures"),
    ("POST", "/api/v1/subjects/search"),
    ("POST", "/api/v1/erasures"),
    ("PATCH", "/api/v1/vault/scopes/a"),
)

ADMIN_BODIES: dict[str, bytes] = {
    "null": b"null",
    "list": b"[]",
    "text": b'"Jane-Canary"',
    "unknown member": b'{"Jane-Canary":1}',
    "wrong types": b'{"name":[],"roles":{"Jane-Canary":1},"value":7,"expires":[],"limits":[],"id":{}}',
    "huge numbers": b'{"limits":{"burst":'
    + b"9" * 300
    + b'},"ttl_s":'
    + b"9" * 300
    + b',"roles":["invoker"]}',
    "long text": b'{"name":"' + b"x" * 100_000 + b'","value":5,"id":"' + b"x" * 100_000 + b'"}',
    "wrong times": b'{"expires":"9999-12-31T23:59:59-23:59","roles":["invoker"]}',
    "NaN": b'{"limits":{"requests_per_second":NaN}}',
    "NUL": b'{"name":"\\u0000","value":"\\u0000"}',
}

STREAMS: dict[str, bytes] = {
    "no object": b"[1]\n",
    "not json": b"Jane-Canary\n",
    "arguments list": b'{"arguments":["Jane-Canary"]}\n',
    "unknown argument": b'{"arguments":{"Jane-Canary":1}}\n{"text":"a"}\n',
    "text number": b'{"text":1}\n',
    "two members": b'{"text":"a","arguments":{}}\n',
    "unknown record": b'{"Jane-Canary":1}\n',
    "NaN": b'{"text":NaN}\n',
    "deep": b"[" * 100_000 + b"\n",
    "surrogate": b'{"text":"\\ud83d"}\n',
}


def corpus() -> Iterator[Hostile]:
    """Yield every request of the corpus."""
    for path in (INVOKE, REDACT, MCP):
        for name, body in MALFORMED.items():
            yield Hostile(f"{name} {path}", path, body)
    for path in (INVOKE, REDACT, RESTORE):
        for name, value in WRONG_VALUES.items():
            yield Hostile(f"{name} {path}", path, json.dumps(value).encode(), refused=name in MUST_REFUSE)
    good = _wrapped(b'"Jane-Canary"')
    for path in (INVOKE, MCP):
        for name, headers in HEADERS.items():
            yield Hostile(f"{name} {path}", path, good, headers)
    for method, path in PATHS:
        body = good if method in {"POST", "PUT", "PATCH"} else b""
        yield Hostile(f"{method} {path[:60]}", path, body, method=method, refused=False)
    for method, path in ADMIN:
        for name, body in ADMIN_BODIES.items():
            yield Hostile(f"{name} {method} {path}", path, body, method=method, refused=True)
    for name, body in STREAMS.items():
        yield Hostile(f"stream {name}", STREAM, body, {"content-type": "application/x-ndjson"})
    yield from _bombs(good)


def _bombs(good: bytes) -> Iterator[Hostile]:
    bomb = _wrapped(b'"' + b"a" * 10_000_000 + b'"')
    yield Hostile("gzip bomb", INVOKE, gzip.compress(bomb), {"content-encoding": "gzip"})
    yield Hostile("gzip bomb over mcp", MCP, gzip.compress(bomb), {"content-encoding": "gzip"})
    yield Hostile("deflate bomb", INVOKE, zlib.compress(bomb), {"content-encoding": "deflate"})
    yield Hostile("gzip of a stream", STREAM, gzip.compress(good), {"content-encoding": "gzip"})
    yield Hostile("nine megabytes", INVOKE, _wrapped(b'"' + b"a" * 9_000_000 + b'"'))
    yield Hostile("sixty megabytes", INVOKE, b'"' + b"a" * 60_000_000 + b'"')
    yield Hostile("sixty megabytes over mcp", MCP, b'"' + b"a" * 60_000_000 + b'"')
