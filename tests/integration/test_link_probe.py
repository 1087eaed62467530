"""Which addresses are asked over the network, and what their answers mean."""

import asyncio

import pytest
from aiohttp import web

from app.upstream.link_probe import NetworkProbe

LOOPBACK = ("127.0.0.0/8", "::1/128")
STATUSES = {"/gone": 404, "/locked": 401, "/broken": 503}
TARGETS = {"/moved": "/here", "/moved-away": "http://169.254.169.254/latest/meta-data", "/loop": "/loop"}


@pytest.fixture
async def server():
    asked = []

    async def answer(request):
        asked.append((request.method, request.path))
        if request.path == "/slow":
            await asyncio.sleep(30)
        if request.path == "/no-head":
            return web.Response(status=405 if request.method == "HEAD" else 200)
        if request.path in TARGETS:
            return web.Response(status=302, headers={"Location": TARGETS[request.path]})
        return web.Response(status=STATUSES.get(request.path, 200), text="x" * 100_000)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    yield port, asked
    await runner.cleanup()


def probe_for(port, **options):
    return NetworkProbe(networks=LOOPBACK, ports=frozenset({80, 443, port}), **options)


async def states(probe, *urls):
    return [one.reachable for one in await probe.probe(urls)]


async def test_answers_are_told_apart(server):
    port, _ = server
    paths = ("here", "gone", "no-head", "locked", "broken", "moved", "loop")
    urls = [f"http://127.0.0.1:{port}/{path}" for path in paths]
    assert await states(probe_for(port), *urls) == [True, False, True, True, None, True, None]


async def test_a_redirect_to_a_forbidden_address_is_not_followed(server):
    port, asked = server
    assert await states(probe_for(port), f"http://127.0.0.1:{port}/moved-away") == [None]
    assert [path for _, path in asked] == ["/moved-away"]


async def test_answers_are_kept_for_a_while(server):
    port, asked = server
    probe = probe_for(port)
    for _ in range(3):
        assert await states(probe, f"http://127.0.0.1:{port}/here") == [True]
    assert len(asked) == 1
    hasty = probe_for(port, keep_s=0)
    for _ in range(2):
        await states(hasty, f"http://127.0.0.1:{port}/here")
    assert len(asked) == 3


async def test_slow_servers_do_not_hold_the_others(server):
    port, _ = server
    probe = probe_for(port, limit_s=0.5)
    urls = [f"http://127.0.0.1:{port}/{path}" for path in ("slow", "here")]
    assert await states(probe, *urls) == [None, True]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/here",
        "http://localhost:{port}/here",
        "http://[::1]:{port}/here",
        "http://127.1:{port}/here",
        "http://[::ffff:127.0.0.1]:{port}/here",
        "http://169.254.169.254/latest/meta-data",
        "http://metadata.google.internal/",
        "http://user:secret@127.0.0.1:{port}/here",
        "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/here",
        "http://127.0.0.1:99999999/",
        "not an address",
    ],
)
async def test_what_is_not_public_is_never_asked(server, url):
    port, asked = server
    closed = NetworkProbe(ports=frozenset({80, 443, port}))
    assert await states(closed, url.format(port=port)) == [None]
    assert asked == []


async def test_only_usual_ports_are_asked(server):
    port, asked = server
    assert await states(NetworkProbe(networks=LOOPBACK), f"http://127.0.0.1:{port}/here") == [None]
    assert asked == []


async def test_nothing_is_asked_of_nobody():
    assert await states(NetworkProbe()) == []
