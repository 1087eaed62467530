"""Tools that repeat arguments in HTTP headers: what goes into which header on the way to a modern server."""

from typing import Any

from mcp.shared.inbound import encode_header_value

from tests.protocol.aggregated_service import connection_of
from tests.protocol.mcp_wire import MODERN, REVISIONS
from tests.protocol.passing_service import opened, passing, put_policy
from tests.upstreams.scripted import ScriptedServer, region

SCOPE = "dev.sluice/scope"
SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "x-mcp-header": "Recipient"},
        "in": {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}},
        "note": {"type": "string"},
    },
}
TOKENS = {"to": "recipient", "place": "place"}
PATIENT = {"deadline_ms": 60_000}
PASSAGE = {"names": ["alpha__*"], "restore_arguments": True, "results": [{"name": "pii_redaction"}]}
MAIL = "odile.brandt@example.org"


def mailing() -> ScriptedServer:
    script = ScriptedServer("alpha")
    script.add_tool("send", region, schema=SCHEMA)  # answers with the headers that it got
    return script


async def send(wire: Any, meta: Any = None, **arguments: Any) -> Any:
    """Call the tool as a client of each revision does: the modern one repeats the arguments in headers, too."""
    given = {**arguments, **arguments.get("in", {})}
    headers = {
        f"mcp-param-{token}": encode_header_value(given[name])
        for name, token in TOKENS.items()
        if wire.modern and name in given
    }
    headers |= {"mcp-name": "alpha__send"} if wire.modern else {}
    return await wire.call("tools/call", meta or {}, headers, name="alpha__send", arguments=arguments)


def heard(reply: Any) -> dict[str, str]:
    """Return the headers of parameters that the server got."""
    seen = reply.result["structuredContent"]
    return {name: value for name, value in seen.items() if name.startswith("mcp-param-")}


async def test_what_an_approved_tool_marks_goes_into_its_own_headers_and_nothing_else_does(
    tmp_path, revision
):
    async with passing(tmp_path, mailing()) as (url, app), opened(url, revision) as wire:
        assert connection_of(app, "alpha").modern
        plain = await send(wire, to="Bonn", note="x: y", **{"in": {"place": "Ürdingen"}})
        bare = await send(wire, note="nothing to repeat")

    assert heard(plain) == {
        "mcp-param-recipient": "Bonn",
        "mcp-param-place": encode_header_value("Ürdingen"),
    }
    assert heard(bare) == {}


async def test_a_value_that_would_end_a_header_or_is_endless_is_refused_and_not_sent(tmp_path, revision):
    script = mailing()
    async with passing(tmp_path, script) as (url, _), opened(url, revision) as wire:
        for value in ("eu\r\nCookie: a=b", "eu\nX", "eu\r", "e" * 4097):
            error = (await send(wire, **{"in": {"place": value}})).error
            assert (error["code"], error["data"]["pointer"]) == (-32602, "/arguments/in/place")
            assert "Cookie" not in str(error)
        assert script.calls == []
        assert heard(await send(wire, to="e" * 4096)) == {"mcp-param-recipient": "e" * 4096}


async def test_originals_go_into_a_header_only_where_the_passage_names_it(tmp_path):
    script = mailing()
    got: list[str | None] = []

    async def keep(context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        got.append(context.request.headers.get("mcp-param-recipient"))
        return await region(context, arguments)

    script.behaviours["send"] = keep
    async with passing(tmp_path, script) as (url, app):
        await put_policy(app, limits=PATIENT)  # the detector starts with its first text
        async with opened(url, MODERN) as wire:
            text = {"type": "text", "text": f"Write to {MAIL}."}
            redacted = await wire.invoke(text, name="pii_redaction", arguments={"scope": "s"})
        handle = redacted.result["content"][0]["text"].removeprefix("Write to ").removesuffix(".")
        for revision in REVISIONS:
            async with opened(url, revision) as wire:
                await put_policy(app, limits=PATIENT, passages=[PASSAGE])
                elsewhere = await send(wire, {SCOPE: "s"}, note=f"for {handle}", to="Bonn")
                refused = [
                    await send(wire, {SCOPE: "s"}, to=handle),
                    await send(wire, {SCOPE: "s"}, **{"in": {"place": f"at {handle}"}}),
                ]
                await put_policy(app, limits=PATIENT, passages=[{**PASSAGE, "headers": ["place"]}])
                refused.append(await send(wire, {SCOPE: "s"}, to=handle, **{"in": {"place": "Bonn"}}))
                await put_policy(app, limits=PATIENT, passages=[{**PASSAGE, "headers": ["RECIPIENT"]}])
                sent = await send(wire, {SCOPE: "s"}, to=handle)

            assert MAIL not in elsewhere.text
            pointers = [reply.error["data"]["pointer"] for reply in refused]
            assert pointers == ["/arguments/to", "/arguments/in/place", "/arguments/to"]
            assert all("`headers`" in reply.error["message"] and MAIL not in reply.text for reply in refused)
            assert MAIL not in sent.text
    assert got == ["Bonn", MAIL] * 2
