"""The client of model providers against a server that behaves and one that does not, on loopback."""

import asyncio
import gzip
import json
import os
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import ApiKey
from app.core.errors import InvalidRequestError, ServiceError
from app.core.gateway.credentials import ProviderCredential
from app.core.gateway.providers import ProviderEntry
from app.upstream.providers.client import ProviderClient
from app.upstream.providers.faults import (
    ProviderAddressError,
    ProviderCutOffError,
    ProviderDownError,
    ProviderSlowError,
    ProviderTooLargeError,
)
from app.upstream.providers.requests import ProviderAnswer, ProviderEndpoint, ProviderRequest
from tests.upstreams.providing import Scripted, free_port, plain, responding, scripted

CANARY = "zq7-c4nary-Jane-Smith"
LOOPBACK = ("127.0.0.0/8",)
KEY = ProviderCredential("k3y")
EVENTS = [f"data: {number}\n\n".encode() for number in range(3)]


@pytest.fixture
async def client() -> AsyncIterator[ProviderClient]:
    made = ProviderClient()
    yield made
    await made.aclose()


def endpoint(port: int, *, networks: tuple[str, ...] = LOOPBACK, **more: Any) -> ProviderEndpoint:
    document = {"name": "main", "kind": "openai", "baseUrl": f"http://127.0.0.1:{port}/v1", **more}
    return ProviderEndpoint("acme", ProviderEntry.model_validate(document), networks)


def chat(**more: Any) -> ProviderRequest:
    body = json.dumps({"model": "m", "input": CANARY}).encode()
    headers = [("Content-Type", "application/json"), ("Cookie", "a=b"), ("X-Sluice-User", "u1")]
    return ProviderRequest("POST", "/chat/completions", **{"headers": headers, "body": body, **more})


async def streaming(script: Scripted, writer: asyncio.StreamWriter) -> None:
    """Send one event at once and the others when the test says so."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number, event in enumerate(EVENTS):
        if number:
            await script.go.wait()
        writer.write(b"%x\r\n%s\r\n" % (len(event), event))
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def silent(script: Scripted, writer: asyncio.StreamWriter) -> None:
    await script.go.wait()


async def taken(
    client: ProviderClient, place: ProviderEndpoint, request: ProviderRequest | None = None
) -> bytes:
    async with client.send(place, request or chat(), KEY) as answer:
        return await answer.whole()


async def refused(client: ProviderClient, place: ProviderEndpoint, kind: type[ServiceError]) -> ServiceError:
    with pytest.raises(kind) as error:
        await taken(client, place)
    assert error.value.details["provider"] == "main"
    assert CANARY not in f"{error.value.message} {error.value.details}"
    assert error.value.__cause__ is None
    return error.value


async def test_a_request_leaves_as_it_should_and_its_answer_comes_as_it_is(client: ProviderClient) -> None:
    async with scripted(plain) as script:
        request = chat(query=[("after", "a b&c"), ("limit", "2")])
        async with client.send(endpoint(script.port), request, KEY) as answer:
            assert (answer.status, await answer.whole()) == (201, b'{"ok": true}')
            assert ("X-Request-ID", "r-1") in answer.headers
    ((line, headers, body),) = script.requests
    assert line == "POST /v1/chat/completions?after=a+b%26c&limit=2 HTTP/1.1"
    assert body == request.body
    assert headers["authorization"] == "Bearer k3y"
    assert headers["accept-encoding"] == "identity"
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"].startswith("sluice/")
    assert not {"cookie", "x-sluice-user"} & set(headers)


async def test_connections_are_pooled_until_the_address_changes_and_no_cookie_is_kept(
    client: ProviderClient,
) -> None:
    async with scripted(plain) as script:
        for _ in range(3):
            await taken(client, endpoint(script.port))
        assert script.connections == 1
        await taken(client, endpoint(script.port, baseUrl=f"http://127.0.0.1:{script.port}/v2"))
        assert (script.connections, script.requests[-1][0]) == (2, "POST /v2/chat/completions HTTP/1.1")
        assert all("cookie" not in headers for _, headers, _ in script.requests)


async def test_a_stream_arrives_as_it_comes(client: ProviderClient) -> None:
    async with scripted(streaming) as script, client.send(endpoint(script.port), chat(), KEY) as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == EVENTS[0]
        script.go.set()
        assert b"".join([chunk async for chunk in chunks]) == b"".join(EVENTS[1:])


async def left_early(client: ProviderClient, place: ProviderEndpoint) -> None:
    async with client.send(place, chat(), KEY) as answer:
        await anext(answer.chunks())


async def cancelled(client: ProviderClient, place: ProviderEndpoint) -> None:
    reading = asyncio.create_task(taken(client, place))
    await asyncio.sleep(0.2)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


@pytest.mark.parametrize("leave", [left_early, cancelled])
async def test_a_caller_that_leaves_ends_the_providers_request(client: ProviderClient, leave: Any) -> None:
    async with scripted(streaming) as script:
        await leave(client, endpoint(script.port))
        async with asyncio.timeout(5):
            await script.ended.wait()


async def test_a_caller_that_leaves_before_the_head_ends_the_request_too(client: ProviderClient) -> None:
    async with scripted(silent) as script:
        await cancelled(client, endpoint(script.port))
        async with asyncio.timeout(5):
            await script.ended.wait()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"x" * 100_000)),
        ("gzip", gzip.compress(b"x" * 60_000) + gzip.compress(b"x" * 40_000)),
        ("deflate", zlib.compress(b"x" * 100_000)),
    ],
)
async def test_an_answer_that_is_compressed_anyway_is_decoded(
    client: ProviderClient, encoding: str, packed: bytes
) -> None:
    head = f"HTTP/1.1 200 OK\nContent-Encoding: {encoding}\nContent-Length: {len(packed)}"
    async with (
        scripted(responding(head, packed)) as script,
        client.send(endpoint(script.port), chat(), KEY) as answer,
    ):
        assert not {"content-encoding", "content-length"} & {name.lower() for name, _ in answer.headers}
        assert await answer.whole() == b"x" * 100_000


PACKED = gzip.compress(os.urandom(5_000))


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("Content-Encoding: br\nContent-Length: 4", b"\x0b\x01\x80a"),
        ("Content-Encoding: gzip\nContent-Length: 4", b"abcd"),
        (f"Content-Encoding: gzip\nContent-Length: {len(PACKED) // 2}", PACKED[: len(PACKED) // 2]),
        ("Content-Length: 100", b"too short"),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\n"),
        ("Transfer-Encoding: chunked", b"5\r\nhello\r\n" * 9_000 + b"zz\r\n"),
    ],
)
async def test_an_answer_that_breaks_off_or_cannot_be_read_is_a_fault(
    client: ProviderClient, head: str, body: bytes
) -> None:
    async with scripted(responding(f"HTTP/1.1 200 OK\n{head}", body, close=True)) as script:
        await refused(client, endpoint(script.port), ProviderCutOffError)
        assert len(script.requests) == 1


async def test_a_stream_that_dies_gives_what_came_and_then_a_fault_and_is_not_repeated(
    client: ProviderClient,
) -> None:
    head = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked"
    async with scripted(responding(head, b"9\r\ndata: 0\n\n\r\n", close=True)) as script:
        async with client.send(endpoint(script.port), chat(), KEY) as answer:
            chunks = answer.chunks()
            assert await anext(chunks) == EVENTS[0]
            with pytest.raises(ProviderCutOffError):
                await anext(chunks)
        assert len(script.requests) == 1


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 2000",
        "Content-Encoding: gzip\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked",
    ],
)
async def test_an_answer_above_the_limit_is_cut_off(client: ProviderClient, head: str) -> None:
    body = b"x" * 2000 if "gzip" not in head else gzip.compress(b"x" * 50_000_000)
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if "chunked" in head else body
    async with scripted(responding(f"HTTP/1.1 200 OK\n{head}", sent)) as script:
        error = await refused(
            client, endpoint(script.port, limits={"maxAnswerBytes": 1999}), ProviderTooLargeError
        )
        assert error.details["maximum"] == 1999
        if "gzip" not in head:
            allowed = endpoint(script.port, limits={"maxAnswerBytes": 2000})
            assert await taken(client, allowed) == b"x" * 2000


@pytest.mark.parametrize(
    ("limits", "answer", "limit"),
    [
        ({"firstByteS": 0.2}, silent, "firstByteS"),
        ({"idleS": 0.2}, streaming, "idleS"),
        ({"totalS": 0.2}, streaming, "totalS"),
    ],
)
async def test_a_slow_provider_is_given_up_at_its_limit(
    client: ProviderClient, limits: dict[str, float], answer: Any, limit: str
) -> None:
    async with scripted(answer) as script:
        error = await refused(client, endpoint(script.port, limits=limits), ProviderSlowError)
        assert error.details["limit"] == limit
        async with asyncio.timeout(5):
            await script.ended.wait()


async def test_a_provider_that_is_down_or_redirects_is_a_fault_and_is_not_followed(
    client: ProviderClient,
) -> None:
    async with scripted(plain) as elsewhere:
        head = f"HTTP/1.1 307 Temporary Redirect\nLocation: http://127.0.0.1:{elsewhere.port}/\nContent-Length: 0"
        async with scripted(responding(head)) as script:
            error = await refused(client, endpoint(script.port), ProviderDownError)
            assert "baseUrl" in error.message and error.details["status"] == 307
        assert elsewhere.requests == []
    assert "refused" in (await refused(client, endpoint(free_port()), ProviderDownError)).message
    closing = responding("HTTQ", close=True)
    async with scripted(closing) as script:
        await refused(client, endpoint(script.port), ProviderDownError)


@pytest.mark.parametrize(
    ("url", "networks", "mending"),
    [
        ("http://127.0.0.1:1/v1", (), "allowedNetworks"),
        ("http://localhost:1/v1", (), "allowedNetworks"),
        ("http://10.1.2.3/v1", LOOPBACK, "allowedNetworks"),
        ("http://[::ffff:10.1.2.3]/v1", LOOPBACK, "allowedNetworks"),
        ("http://169.254.169.254/v1", ("0.0.0.0/0",), "never"),
        ("http://93.184.216.34/v1", (), "https://"),
        ("http://2130706433/v1", (), "host"),
    ],
)
async def test_an_address_inside_is_not_dialed_unless_it_is_allowed(
    client: ProviderClient, url: str, networks: tuple[str, ...], mending: str
) -> None:
    error = await refused(client, endpoint(1, networks=networks, baseUrl=url), ProviderAddressError)
    assert mending in error.message


@pytest.mark.parametrize("part", ["", ".", "..", "%2e%2e", "a%2fb", "..%2f..", "a\\b", "a%0ab"])
async def test_a_path_stays_below_the_base_url(client: ProviderClient, part: str) -> None:
    async with scripted(plain) as script:
        with pytest.raises(InvalidRequestError, match="path"):
            await taken(
                client, endpoint(script.port), ProviderRequest("GET", f"/responses/{part}/input_items")
            )
        await taken(client, endpoint(script.port), ProviderRequest("GET", "/responses/resp_a?b#c/é"))
    assert [line for line, _, _ in script.requests] == ["GET /v1/responses/resp_a%3Fb%23c/%C3%A9 HTTP/1.1"]


async def test_a_key_of_ours_opens_no_connection(client: ProviderClient) -> None:
    async with scripted(plain) as script:
        with pytest.raises(InvalidRequestError, match="key of Sluice"):
            await taken(
                client, endpoint(script.port), chat(body=b'{"a": "%s"}' % str(ApiKey.generate()).encode())
            )
        assert (script.connections, script.requests) == (0, [])


async def test_a_large_body_and_many_streams_at_once_go_through(client: ProviderClient) -> None:
    async with scripted(plain) as script:
        large = chat(body=os.urandom(4_000_000))
        assert await taken(client, endpoint(script.port), large) == b'{"ok": true}'
        assert script.requests[0][2] == large.body
        answers = await asyncio.gather(*(taken(client, endpoint(script.port)) for _ in range(50)))
        assert len(answers) == 50


async def test_an_answer_that_is_under_way_survives_a_change_of_the_provider(client: ProviderClient) -> None:
    async with scripted(streaming) as script, client.send(endpoint(script.port), chat(), KEY) as answer:
        assert isinstance(answer, ProviderAnswer)
        chunks = answer.chunks()
        await anext(chunks)
        changed = endpoint(script.port, limits={"connectS": 3})
        async with client.send(changed, chat(), KEY):
            script.go.set()
            assert b"".join([chunk async for chunk in chunks]) == b"".join(EVENTS[1:])
