"""Prompts, resources, templates and completion of servers behind this one, over the wire, on both revisions."""

import pytest
import pytest_asyncio

from tests.protocol.passing_service import Passing, ask, call, listed, put_policy
from tests.upstreams.scripted import ScriptedServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


def alpha_script():
    script = ScriptedServer("alpha")
    script.resources["only://alpha"] = {"uri": "only://alpha", "name": "only", "_meta": {"vendor/x": 1}}
    return script


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    async with Passing.shared(
        tmp_path_factory.mktemp("passing"), alpha_script(), ScriptedServer("beta")
    ) as found:
        yield found


@pytest.fixture
def alpha(served):
    return served.alpha


@pytest.fixture
def beta(served):
    return served.beta


@pytest_asyncio.fixture(loop_scope="module")
async def wire(revision, served):
    """Yield a client of the service that the module shares; who changes a list serves one of their own."""
    async with served.wire(revision) as found:
        yield found


async def test_prompts_have_their_server_s_name_in_front(wire, alpha):
    prompts = await listed(wire, "prompts/list")
    made = await ask(wire, "prompts/get", name="alpha__greet", arguments={"who": "Ada"})

    assert [one["name"] for one in prompts] == ["alpha__greet", "beta__greet"]
    assert prompts[0]["arguments"] == [{"name": "who", "required": True}]
    assert made.result["messages"][0]["content"]["text"] == "Greet Ada."
    assert alpha.calls == [("prompts/get", "greet")]


async def test_an_unknown_prompt_is_refused_here(wire, alpha, beta):
    for name in ("greet", "gamma__greet", "alpha__nothing"):
        error = (await ask(wire, "prompts/get", name=name)).error
        assert (error["code"], error["data"]["pointer"]) == (-32602, "/name")
    assert alpha.calls == beta.calls == []


async def test_a_uri_of_one_server_is_kept_and_one_of_two_names_its_server(wire):
    uris = [one["uri"] for one in await listed(wire, "resources/list")]
    templates = [one["uriTemplate"] for one in await listed(wire, "resources/templates/list")]

    assert uris == [
        "sluice://alpha/memo://one",
        "sluice://alpha/memo://two",
        "only://alpha",
        "sluice://beta/memo://one",
        "sluice://beta/memo://two",
    ]
    assert templates == ["sluice://alpha/memo://{name}", "sluice://beta/memo://{name}"]


async def test_resources_are_read_as_they_are_listed_and_through_templates(wire, beta):
    listed_one = await ask(wire, "resources/read", uri="sluice://beta/memo://one")
    filled = await ask(wire, "resources/read", uri="sluice://beta/memo://anything")

    [content] = listed_one.result["contents"]
    assert content == {
        "uri": "sluice://beta/memo://one",
        "mimeType": "text/plain",
        "text": "beta has memo://one",
    }
    assert filled.result["contents"][0]["text"] == "beta has memo://anything"
    assert beta.calls == [("resources/read", "memo://one"), ("resources/read", "memo://anything")]
    if wire.modern:
        assert (listed_one.result["resultType"], listed_one.result["cacheScope"]) == ("complete", "private")
    else:
        assert set(listed_one.result) == {"contents"}


@pytest.mark.parametrize("uri", ["memo://one", "nothing://x", "sluice://gamma/memo://one", "sluice://", "x"])
async def test_a_uri_that_is_not_known_or_not_unique_is_refused_here(wire, alpha, beta, uri):
    error = (await ask(wire, "resources/read", uri=uri)).error

    assert (error["code"], error["data"]["pointer"]) == (-32602, "/uri")
    assert alpha.calls == beta.calls == []


async def test_an_error_of_a_server_s_read_keeps_its_data(wire):
    error = (await ask(wire, "resources/read", uri="only://alpha")).error

    assert (error["code"], error["message"], error["data"]) == (
        -32602,
        "Resource not found",
        {"uri": "only://alpha"},
    )


@pytest_asyncio.fixture(loop_scope="module")
async def own_wire(revision, tmp_path):
    async with (
        Passing.shared(tmp_path, alpha_script(), ScriptedServer("beta")) as served,
        served.wire(revision) as found,
    ):
        yield found, served.alpha


async def test_links_in_a_result_can_be_read_by_whom_it_was_given(own_wire):
    wire, alpha = own_wire
    link = {"type": "resource_link", "uri": "memo-link://1", "name": "linked"}
    alpha.verbatim["tools/call:echo"] = {"content": [link], "resultType": "complete"}
    contents = [{"uri": "memo-link://1", "text": "linked"}]
    cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    before = await ask(wire, "resources/read", uri="memo-link://1")
    alpha.verbatim["resources/read"] = {"contents": contents, **cached}
    result = (await call(wire, "alpha__echo")).result
    after = await ask(wire, "resources/read", uri="memo-link://1")

    assert before.error["code"] == -32602
    assert result["content"] == [link]
    assert after.result["contents"] == contents


async def test_completion_asks_the_server_behind_the_prompt_or_template(wire):
    argument = {"name": "who", "value": "t"}
    prompt = await ask(
        wire, "completion/complete", ref={"type": "ref/prompt", "name": "beta__greet"}, argument=argument
    )
    ref = {"type": "ref/resource", "uri": "sluice://alpha/memo://{name}"}
    template = await ask(wire, "completion/complete", ref=ref, argument=argument)
    unknown = await ask(
        wire, "completion/complete", ref={"type": "ref/prompt", "name": "greet"}, argument=argument
    )

    for reply in (prompt, template):
        assert reply.result["completion"] == {"values": ["two", "three"], "total": 2, "hasMore": False}
    assert (unknown.error["code"], unknown.error["data"]["pointer"]) == (-32602, "/ref/name")


async def test_grants_hold_for_prompts_resources_and_templates(wire, alpha, beta):
    members = [
        {"kind": "prompt", "name": "beta__*"},
        {"kind": "resource", "name": "only:*"},
        {"kind": "template", "name": "*", "server": "beta"},
    ]
    await put_policy(wire.app, grants=[{"members": members}])

    assert [one["name"] for one in await listed(wire, "prompts/list")] == ["beta__greet"]
    assert [one["uri"] for one in await listed(wire, "resources/list")] == ["only://alpha"]
    assert [one["uriTemplate"] for one in await listed(wire, "resources/templates/list")] == [
        "sluice://beta/memo://{name}"
    ]
    assert (await ask(wire, "prompts/get", name="alpha__greet")).error["code"] == -32602
    assert (await ask(wire, "resources/read", uri="sluice://alpha/memo://one")).error["code"] == -32602
    assert (await ask(wire, "resources/read", uri="sluice://beta/memo://one")).result
    assert alpha.calls == []


async def test_the_modern_header_must_name_the_resource(wire, alpha):
    if wire.modern:
        reply = await wire.call("resources/read", {}, {"mcp-name": "memo://other"}, uri="only://alpha")
        assert (reply.status, reply.error["code"]) == (400, -32020)
    else:
        reply = await wire.call("resources/read", uri="only://alpha")
        assert reply.error["code"] == -32602
    assert len(alpha.calls) == (0 if wire.modern else 1)


async def test_methods_of_the_handshake_are_unknown_in_the_modern_revision(wire):
    reply = await wire.call("resources/subscribe", uri="only://alpha")

    if wire.modern:
        assert (reply.status, reply.error["code"]) == (404, -32601)
    else:
        assert reply.result == {}
