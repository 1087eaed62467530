"""Tools of servers behind this one, over the wire, on both revisions."""

import json
from typing import Any

import pytest
import pytest_asyncio

from tests.protocol.mcp_wire import HANDSHAKE
from tests.protocol.passing_service import Passing, call, listed, opened, passing, put_policy
from tests.upstreams.scripted import MISDECLARED, ScriptedServer, text

pytestmark = pytest.mark.asyncio(loop_scope="module")


def alpha_script():
    script = ScriptedServer("alpha")
    script.add_tool("wrong", schema=MISDECLARED)
    return script


def beta_script():
    script = ScriptedServer("beta")
    script.tools.clear()
    script.add_tool(
        "one", title="One", annotations={"readOnlyHint": True}, icons=[{"src": "https://x/i.png"}]
    )
    return script


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory):
    async with Passing.shared(tmp_path_factory.mktemp("passing"), alpha_script(), beta_script()) as found:
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


async def test_all_tools_of_all_servers_are_listed_under_their_names(wire):
    names = [one["name"] for one in await listed(wire, "tools/list")]

    assert {"alpha__echo", "alpha__add", "beta__one"} <= set(names)
    assert names.index("alpha__echo") < names.index("beta__one")
    assert "alpha__region" in names  # the file approves also what it repeats in a header
    assert "alpha__wrong" not in names  # it declares a header in a way that no client may accept


async def test_a_definition_is_kept_whole(wire, beta):
    shown = next(one for one in await listed(wire, "tools/list") if one["name"] == "beta__one")

    assert shown == {**beta.tools["one"], "name": "beta__one"}


async def test_the_form_of_a_list_belongs_to_the_revision(wire):
    result = (await wire.call("tools/list")).result

    if wire.modern:
        assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "sluice"
    else:
        assert set(result) == {"tools"}


async def test_a_result_passes_whole(wire, alpha):
    alpha.verbatim["tools/call:echo"] = {
        "content": [{"type": "text", "text": "x", "unheard": [None, 10**30]}, {"type": "hologram", "of": 1}],
        "structuredContent": {"big": 10**30, "z": None},
        "isError": True,
        "_meta": {"vendor/x": {"y": None}},
        "unheardOf": {"a": [1.5]},
        "resultType": "complete",
    }
    result = (await call(wire, "alpha__echo")).result

    if wire.modern:
        assert result.pop("resultType") == "complete"
        assert result["_meta"].pop("io.modelcontextprotocol/serverInfo")["name"] == "sluice"
    expected = {key: value for key, value in alpha.verbatim["tools/call:echo"].items() if key != "resultType"}
    assert result == expected


async def test_arguments_pass_exactly(wire):
    arguments = {"n": 10**30, "f": 1.0, "text": "Grüße 😀\u2028", "deep": [{"a": [None, True]}]}
    result = (await call(wire, "alpha__echo", arguments)).result

    assert result["structuredContent"] == arguments
    assert json.loads(result["content"][0]["text"])["n"] == 10**30


async def test_an_error_of_the_server_keeps_its_code_its_words_and_its_data(wire):
    error = (
        await call(wire, "alpha__refuse", {"code": -32077, "message": "Not today.", "data": {"a": [1]}})
    ).error
    missing = (await call(wire, "alpha__refuse", {"code": -32002, "message": "Gone.", "data": None})).error

    assert error == {"code": -32077, "message": "Not today.", "data": {"a": [1]}}
    assert (missing["code"], missing["message"]) == (-32602, "Gone.")


@pytest.mark.parametrize(
    "name", ["alpha__nothing", "echo", "alpha__", "gamma__echo", "alpha__wrong", "", "x" * 5000]
)
async def test_what_is_not_listed_is_refused_here_and_reaches_no_server(wire, alpha, name):
    error = (await call(wire, name)).error

    assert (error["code"], error["data"]["pointer"]) == (-32602, "/name")
    assert "There is no such tool" in error["message"]
    assert alpha.calls == []


async def test_params_of_a_wrong_form_are_refused_here(wire, alpha):
    for params in ({"name": 7}, {"name": "alpha__echo", "arguments": [1]}, {}):
        headers = {"mcp-name": str(params.get("name"))} if wire.modern else {}
        reply = await wire.call("tools/call", {}, headers, **params)
        assert reply.error["code"] in (-32602, -32020)
    assert alpha.calls == []


async def test_a_result_above_the_bound_is_refused(revision, tmp_path):
    alpha = alpha_script()
    alpha.verbatim["tools/call:echo"] = {**text("x" * 5000), "resultType": "complete"}
    async with (
        passing(tmp_path, alpha, max_result_bytes=4096) as (url, _),
        opened(url, revision) as wire,
    ):
        reply = await call(wire, "alpha__echo")

    assert reply.error["data"]["code"] == "too_large"
    assert reply.status == 200  # 413 would say that the client's own request is too large


async def test_a_changed_list_shows_at_the_next_request_and_is_held_back_until_it_is_approved(
    revision, tmp_path
):
    async with passing(tmp_path, alpha_script()) as (url, _), opened(url, revision) as wire:
        before = await listed(wire, "tools/list")
        assert (await call(wire, "alpha__grow", {"name": "later"})).result["content"][0]["text"] == "grown"

        assert await listed(wire, "tools/list") == before
        assert "There is no such tool" in (await call(wire, "alpha__later")).error["message"]


async def test_a_list_comes_in_pages_whose_cursors_belong_to_it(revision, tmp_path):
    beta = beta_script()
    for number in range(600):
        beta.add_tool(f"tool_{number:03}")
    async with passing(tmp_path, beta) as (url, app), opened(url, revision) as wire:
        first = (await wire.call("tools/list")).result
        names = [one["name"] for one in await listed(wire, "tools/list")]
        await put_policy(app, grants=[{"members": [{"kind": "tool", "name": "beta__tool_*"}]}])
        stale = await wire.call("tools/list", cursor=first["nextCursor"])

    assert len(first["tools"]) == 250
    assert names == [f"beta__{name}" for name in beta.tools]
    assert stale.error["code"] == -32602
    assert stale.error["data"]["pointer"] == "/cursor"


async def test_grants_decide_what_is_listed_and_called(wire, alpha):
    await put_policy(wire.app, grants=[{"members": [{"kind": "tool", "name": "alpha__a*"}]}])

    assert [one["name"] for one in await listed(wire, "tools/list")] == ["alpha__add"]
    assert (await call(wire, "alpha__add", {"a": 1, "b": 2})).result["content"][0]["text"] == "3"
    forbidden, unknown = [(await call(wire, name)).error for name in ("alpha__echo", "alpha__nothing")]
    for error in (forbidden, unknown):
        error["data"].pop("requestId")
    assert forbidden == unknown
    assert alpha.calls == [("tools/call", "add")]


async def test_progress_and_logs_come_before_the_result(wire):
    progress = await call(wire, "alpha__progress", {"steps": 2}, meta={"progressToken": "mine"})
    level = {"io.modelcontextprotocol/logLevel": "debug"}
    if not wire.modern:
        await wire.call("logging/setLevel", level="debug")
    logs = await call(wire, "alpha__log", {"say": "hello"}, meta=level if wire.modern else {})

    told = [
        (one["method"], one["params"]["progressToken"], one["params"]["progress"])
        for one in progress.notifications
    ]
    assert told == [("notifications/progress", "mine", 1), ("notifications/progress", "mine", 2)]
    assert progress.result["content"][0]["text"] == "done"
    assert [one["params"]["data"] for one in logs.notifications] == ["hello"]


async def test_the_meta_of_a_request_reaches_the_server_without_what_is_ours(wire, alpha):
    await call(wire, "alpha__echo", meta={"vendor/x": {"y": [1]}, "dev.sluice/concerns": {}})

    [meta] = alpha.metas
    assert meta["vendor/x"] == {"y": [1]}
    assert not [key for key in meta if key.startswith("dev.sluice/")]


async def test_the_server_is_advertised_as_one_whose_lists_change(revision, wire):
    reply = await wire.open() if revision == HANDSHAKE else await wire.call("server/discover")
    shown: Any = reply.result["capabilities"]

    assert shown["tools"]["listChanged"] is True
    assert shown["prompts"]["listChanged"] is True
    assert shown["resources"] == {"subscribe": True, "listChanged": True}
    assert "completions" in shown
    assert "logging" in shown


async def test_a_tool_whose_numbers_stand_in_headers_is_compared_with_them(revision, tmp_path):
    alpha = alpha_script()
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}, "deep": {"type": "string"}},
    }
    alpha.add_tool("counted", schema=schema)
    async with passing(tmp_path, alpha) as (url, _), opened(url, revision) as wire:
        if not wire.modern:
            assert (await call(wire, "alpha__counted", {"count": 5})).result
            return
        body = wire.body("tools/call", {"name": "alpha__counted", "arguments": {"count": 5}})
        headers = {**wire.headers("tools/call"), "mcp-name": "alpha__counted"}
        right = await wire.post(body, {**headers, "mcp-param-count": "5"})
        wrong = await wire.post(body, {**headers, "mcp-param-count": "6"})
        missing = await wire.post(body, headers)

    assert right.result["structuredContent"] == {"count": 5}
    assert [(one.status, one.error["code"]) for one in (wrong, missing)] == [(400, -32020)] * 2


async def test_two_passages_of_a_conversation_share_a_scope(wire, alpha):
    await put_policy(
        wire.app,
        passages=[
            {"names": ["alpha__echo"], "restore_arguments": True, "results": [{"name": "pii_redaction"}]}
        ],
    )
    first = (await call(wire, "alpha__echo", {"mail": "jane.smith@example.com"})).result
    handle = first["structuredContent"]["mail"]
    scope = first["_meta"]["dev.sluice/scope"]
    meta = {"dev.sluice/scope": scope} if wire.modern else {}
    seen = []

    async def note(_context, arguments):
        seen.append(arguments["mail"])
        return {**text(arguments["mail"]), "structuredContent": arguments}

    alpha.behaviours["echo"] = note
    second = (await call(wire, "alpha__echo", {"mail": handle}, meta=meta)).result

    assert handle == "[EMAIL_1]"
    assert seen == ["jane.smith@example.com"]
    assert second["structuredContent"] == {"mail": "[EMAIL_1]"}
    # Who named the scope is not told of it; who did not, is told of it each time.
    assert (second.get("_meta") or {}).get("dev.sluice/scope") == (None if wire.modern else scope)
    assert "jane" not in json.dumps([first, second])


async def test_a_passage_redacts_names_of_members_and_gives_them_back_to_the_tool(wire, alpha):
    passage = {"names": ["alpha__echo"], "restore_arguments": True, "results": [{"name": "pii_redaction"}]}
    mail, seen = "jane.smith@example.com", []

    async def note(_context, arguments):
        seen.append(arguments)
        return {**text(json.dumps({mail: 1})), "structuredContent": {"by": {mail: 2, "count": 3}}}

    alpha.behaviours["echo"] = note
    await put_policy(wire.app, passages=[passage])
    first = (await call(wire, "alpha__echo", {})).result
    meta = {"dev.sluice/scope": first["_meta"]["dev.sluice/scope"]} if wire.modern else {}
    second = (await call(wire, "alpha__echo", {"by": {"[EMAIL_1]": 1}}, meta=meta)).result
    for result in (first, second):
        assert result["structuredContent"] == {"by": {"[EMAIL_1]": 2, "count": 3}}
        assert json.loads(result["content"][0]["text"]) == {"[EMAIL_1]": 1}
    assert seen == [{}, {"by": {mail: 1}}]
    await put_policy(wire.app, passages=[])
    assert mail in (await call(wire, "alpha__echo", {})).result["structuredContent"]["by"]
