"""Lists over REST: pages follow each other without gaps, and `next` is there only where another page has items."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.rest_app import Rest, open_rest

pytestmark = pytest.mark.in_turn("database_url")

API = "/api/v1"
NAMES = ("apple", "banana", "cherry", "damson")
STEP = {"name": "timestamp_injector"}


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


async def put(rest: Rest, path: str, body: Any, *, method: str = "PUT") -> None:
    answer = await rest.call(method, path, body)
    assert answer.is_success, answer.text


async def keys(rest: Rest) -> str:
    for role in ("operator", "auditor", "invoker"):
        await rest.key(role)
    await rest.key()
    return f"{API}/keys"


async def tenants(rest: Rest) -> str:
    for name in NAMES:
        answer = await rest.call(
            "POST", f"{API}/tenants", {"name": f"zz-{rest.tenant}-{name}"}, tenant="system"
        )
        assert answer.status_code == 201, answer.text
    return f"{API}/tenants?cursor=zz-{rest.tenant}"


async def policy_versions(rest: Rest) -> str:
    for version, seconds in enumerate(range(60, 64)):
        await put(rest, f"{API}/policies?expected_version={version}", {"scope_ttl_s": seconds})
    return f"{API}/policies/versions"


async def pipelines(rest: Rest) -> str:
    for name in (*NAMES, "removed"):
        await put(rest, f"{API}/pipelines/{name}", {"steps": [STEP]})
    assert (await rest.call("DELETE", f"{API}/pipelines/removed")).status_code == 204
    return f"{API}/pipelines"


async def pipeline_versions(rest: Rest) -> str:
    for name in NAMES:
        await put(rest, f"{API}/pipelines/fruit", {"description": name, "steps": [STEP]})
    return f"{API}/pipelines/fruit/versions"


async def groups(rest: Rest) -> str:
    for name in NAMES:
        await put(rest, f"{API}/groups/{name}", {"name": name})
    return f"{API}/groups"


async def concerns(rest: Rest) -> str:
    for name in NAMES:
        body = {"name": name, "description": "Seconds", "values": {"min": 1, "max": 60}, "default": 10}
        await put(rest, f"{API}/concerns/{name}", body)
    return f"{API}/concerns"


async def mappings(rest: Rest) -> str:
    for kind, name in (("tool", "a_b"), ("tool", "a-b"), ("tool", "aB"), ("prompt", "z")):
        await put(rest, f"{API}/concern-mappings", {"kind": kind, "name": name, "concerns": {}})
    return f"{API}/concern-mappings"


async def servers(rest: Rest) -> str:
    for name in NAMES:
        body = {"name": name, "settings": {"url": "https://mcp.example.com"}}
        await put(rest, f"{API}/servers", body, method="POST")
    return f"{API}/servers"


async def providers(rest: Rest) -> str:
    for name in NAMES:
        body = {"kind": "openai", "baseUrl": "https://api.example.com/v1"}
        await put(rest, f"{API}/providers/{name}", body)
    return f"{API}/providers"


async def descriptions(rest: Rest) -> str:
    for name in ("data__a_b", "data__a-b", "data__aB", "data__z"):
        await put(rest, f"{API}/tool-descriptions/{name}", {"short": "Some."})
    return f"{API}/tool-descriptions"


async def collections(rest: Rest) -> str:
    for name in NAMES:
        await put(rest, f"{API}/collections/{name}", {})
    return f"{API}/collections"


async def documents(rest: Rest) -> str:
    await put(rest, f"{API}/collections/notes", {})
    for number, name in enumerate(NAMES):
        body = {"external_id": name, "source": "wiki" if number % 2 else "mail", "text": "x"}
        await put(rest, f"{API}/collections/notes/documents", body, method="POST")
    return f"{API}/collections/notes/documents"


async def ingestions(rest: Rest) -> str:
    await put(rest, f"{API}/collections/notes", {})
    for name in NAMES:
        answer = await rest.call(
            *("POST", f"{API}/collections/notes/documents"),
            headers={"content-type": "text/plain"},
            content=b"The zeppelin landed. " * 4000,
            params={"external_id": name},
        )
        assert answer.status_code == 202, answer.text
    return f"{API}/collections/notes/ingestions"


async def scopes(rest: Rest) -> str:
    for name in NAMES:
        assert (await rest.invoke("pii_redaction", ["jane@example.com"], {"scope": name})).is_success
    return f"{API}/vault/scopes"


async def entries(rest: Rest) -> str:
    found = ", ".join(f"{name}@example.com" for name in NAMES)
    assert (await rest.invoke("pii_redaction", [found], {"scope": "fruit"})).is_success
    return f"{API}/vault/scopes/fruit/entries"


async def events(rest: Rest) -> str:
    for _ in NAMES:
        assert (await rest.invoke("timestamp_injector", ["x"])).is_success
    return f"{API}/audit/events?action=middleware.invoke"


LISTS: list[Callable[[Rest], Awaitable[str]]] = [
    *(
        keys,
        tenants,
        policy_versions,
        pipelines,
        pipeline_versions,
        groups,
        concerns,
        mappings,
        servers,
        providers,
    ),
    *(descriptions, collections, documents, ingestions, scopes, entries, events),
]


async def pages(rest: Rest, path: str, limit: int) -> list[list[Any]]:
    """Return the items of each page up to the one without ``next``."""
    tenant = "system" if "/tenants" in path else None
    address, _, query = path.partition("?")
    read: list[list[Any]] = []
    while True:
        answer = await rest.call("GET", f"{address}?{query}&limit={limit}", tenant=tenant)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        read.append(page["items"])
        if page["next"] is None:
            return read
        kept = [part for part in query.split("&") if part and not part.startswith("cursor=")]
        query = "&".join([*kept, f"cursor={quote(page['next'], safe='')}"])


@pytest.mark.parametrize("fill", LISTS, ids=lambda fill: fill.__name__)
async def test_the_last_page_of_a_list_is_never_empty(
    rest: Rest, fill: Callable[[Rest], Awaitable[str]]
) -> None:
    path = await fill(rest)
    (everything,) = await pages(rest, path, 1000)
    total = len(everything)
    assert total >= len(NAMES)
    assert await pages(rest, path, total) == [everything]
    assert await pages(rest, path, 1) == [[item] for item in everything]
    # One more item than a page holds: the page that `next` promises has it.
    assert await pages(rest, path, total - 1) == [everything[:-1], everything[-1:]]
