"""Which addresses a server may have."""

import socket

import pytest

from app.core.errors import InvalidArgumentsError
from app.upstream.transport.dialing import Gate, GatedResolver, check_url, open_session
from app.upstream.transport.options import LinkOptions

PUBLIC = ["https://8.8.8.8/mcp", "https://[2606:4700:4700::1111]/mcp"]
NOT_PUBLIC = [
    "http://127.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://10.1.2.3/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://224.0.0.1/",
    "http://0.0.0.0/",
    "http://localhost/",
    "http://localhost./",
]
METADATA = [
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://Metadata.Google.Internal./",
]
MALFORMED = [
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://127.0.0.1%2f@example.com/",
    "http://example.com@127.0.0.1/",
    "http://user:password@8.8.8.8/",
    "http://127\u30020\u30020\u30021/",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "http://10.0.0.1\\@8.8.8.8/",
    "http://[fe80::1%25eth0]/",
    "https://8.8.8.8:99999/",
    "https://8.8.8.8/\r\nX: y",
    "https://",
]


def secured(url):
    return url.replace("http://", "https://", 1)


@pytest.mark.parametrize("url", PUBLIC)
async def test_public_addresses_may_be_connected_to(url):
    await check_url(url, ())


@pytest.mark.parametrize("url", [*NOT_PUBLIC, *map(secured, NOT_PUBLIC)])
async def test_an_address_that_is_not_public_is_refused_and_the_mending_named(url):
    with pytest.raises(InvalidArgumentsError) as refused:
        await check_url(url, ())
    assert "SLUICE_UPSTREAMS__ALLOWED_NETWORKS" in refused.value.message
    assert refused.value.details == {"pointer": "/settings/url"}


@pytest.mark.parametrize("url", [*METADATA, *map(secured, METADATA)])
@pytest.mark.parametrize("networks", [(), None, ("0.0.0.0/0", "::/0")])
async def test_cloud_metadata_is_never_connected_to_whoever_gave_the_settings(url, networks):
    with pytest.raises(InvalidArgumentsError):
        await check_url(url, networks)


@pytest.mark.parametrize("url", [*MALFORMED, *map(secured, MALFORMED)])
@pytest.mark.parametrize("networks", [(), None])
async def test_a_url_that_readers_could_take_in_two_ways_is_refused(url, networks):
    with pytest.raises(InvalidArgumentsError):
        await check_url(url, networks)


@pytest.mark.parametrize("url", [url for url in NOT_PUBLIC if "localhost" not in url])
async def test_settings_of_the_host_may_name_internal_addresses(url):
    await check_url(url, None)


async def test_networks_that_are_allowed_may_be_connected_to_and_no_others():
    networks = ("10.0.0.0/8", "fc00::/7")
    await check_url("http://10.1.2.3:8080/mcp", networks)
    await check_url("http://[fc00::1]/mcp", networks)
    await check_url("http://[::ffff:10.1.2.3]/mcp", networks)
    for other in ("http://127.0.0.1/", "http://192.168.0.1/", "http://[::1]/"):
        with pytest.raises(InvalidArgumentsError):
            await check_url(other, networks)


async def test_a_public_server_is_spoken_to_encrypted():
    with pytest.raises(InvalidArgumentsError, match="https"):
        await check_url("http://8.8.8.8/mcp", ())
    await check_url("http://8.8.8.8/mcp", None)


class Names:
    """Answers questions for addresses like a name server that an attacker runs."""

    def __init__(self, monkeypatch, *answers):
        self.answers = list(answers)
        monkeypatch.setattr("asyncio.get_running_loop", lambda: self)

    async def getaddrinfo(self, host, port, *, family, type):  # noqa: A002 - the loop's own name for it
        found = self.answers.pop(0)
        return [(socket.AF_INET, type, 6, "", (address, port)) for address in found]


async def test_every_address_of_a_name_is_checked(monkeypatch):
    Names(monkeypatch, ["8.8.8.8", "127.0.0.1"])
    resolver = GatedResolver(Gate((), encrypted=True))
    with pytest.raises(InvalidArgumentsError):
        await resolver.resolve("mixed.example", 443)


async def test_a_name_that_changes_its_meaning_is_checked_again_and_only_the_checked_address_is_dialed(
    monkeypatch,
):
    Names(monkeypatch, ["8.8.8.8"], ["169.254.169.254"])
    resolver = GatedResolver(Gate((), encrypted=True))
    first = await resolver.resolve("rebinding.example", 443)
    assert [(found["host"], found["flags"]) for found in first] == [("8.8.8.8", socket.AI_NUMERICHOST)]
    with pytest.raises(InvalidArgumentsError):
        await resolver.resolve("rebinding.example", 443)


@pytest.mark.parametrize(("name", "value"), [("X-A", "b\r\nX: c"), ("X A", "b"), ("", "b"), ("X", "\x00")])
async def test_headers_that_would_break_the_request_are_refused(name, value):
    options = LinkOptions(connect_timeout_s=1, max_result_bytes=1024)
    with pytest.raises(InvalidArgumentsError) as refused:
        open_session("https://8.8.8.8/", options, {name: value})
    assert refused.value.details == {"pointer": "/settings/headers"}


async def test_headers_of_the_transport_are_ours_and_the_rest_the_operators():
    options = LinkOptions(connect_timeout_s=1, max_result_bytes=1024)
    given = {"Authorization": "Bearer x", "accept-encoding": "gzip", "Mcp-Session-Id": "stolen"}
    async with open_session("https://8.8.8.8/", options, given) as session:
        assert session.headers["Authorization"] == "Bearer x"
        assert session.headers.getall("Accept-Encoding") == ["identity"]
        assert "Mcp-Session-Id" not in session.headers
        assert session.trust_env is False
