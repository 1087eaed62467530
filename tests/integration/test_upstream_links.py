"""What every connection carries, whatever the transport and the revision: against a server on the SDK."""

import asyncio
from contextlib import ExitStack

import pytest

from app.core.errors import DeadlineExceededError
from app.core.upstream import UpstreamError
from tests.upstreams.links import CALLED_BACK, MIB, Client, Unasked, call, linked, until
from tests.upstreams.running import serving_http, serving_sse
from tests.upstreams.scripted import ScriptedServer
from tests.upstreams.warm import warm_settings

BIG = 123456789012345678901234567890
WAYS = {
    "http, modern, events": ("http", "auto", {}),
    "http, modern, json": ("http", "auto", {"json_response": True}),
    "http, handshake, events": ("http", "handshake", {}),
    "http, handshake, json": ("http", "handshake", {"json_response": True}),
    "http, handshake, stateless": ("http", "handshake", {"stateless_http": True}),
    "stdio, modern": ("stdio", "auto", {}),
    "stdio, handshake": ("stdio", "handshake", {}),
    "sse": ("sse", "auto", {}),
}
TELLING = [way for way in WAYS if "json" not in way]
CALLING_BACK = ["http, handshake, events", "stdio, handshake", "sse"]
HEARING = [way for way in WAYS if way not in {"http, handshake, stateless", "http, modern, json"}]


class Way:
    """One transport and revision to the scripted server."""

    def __init__(self, name, stack):
        transport, self.revision, served = WAYS[name]
        self.script = ScriptedServer("scripted")
        self.in_process = transport != "stdio"
        if transport == "stdio":
            self.settings = warm_settings()
        elif transport == "sse":
            self.settings = {"type": "sse", "url": stack.enter_context(serving_sse(self.script))}
        else:
            self.settings = {"url": stack.enter_context(serving_http(self.script, **served))}

    def linked(self, **more):
        return linked(self.settings, **{"revision": self.revision, **more})


@pytest.fixture
def way(request):
    with ExitStack() as stack:
        yield Way(request.param, stack)


def over(names):
    return pytest.mark.parametrize("way", list(names), indirect=True)


@over(WAYS)
async def test_the_server_says_who_it_is_and_what_it_can_do(way):
    async with way.linked() as link:
        modern = way.revision == "auto" and way.settings.get("type") != "sse"
        assert (link.protocol_version, link.modern) == (
            ("2026-07-28", True) if modern else ("2025-11-25", False)
        )
        assert link.server_info == {"name": "scripted", "version": "1"}
        assert link.instructions == "Ask scripted nicely."
        assert link.capabilities["tools"] == {"listChanged": True}


@over(WAYS)
async def test_arguments_and_results_keep_every_digit_and_letter(way):
    given = {"n": BIG, "x": 1.5, "text": "Grüße \U0001f600 \u2028", "deep": [{"a": None, "b": [True, {}]}]}
    async with way.linked() as link:
        result = await call(link, "echo", given)
    assert result["structuredContent"] == given
    assert isinstance(result["structuredContent"]["n"], int)


@over([way for way in WAYS if not way.startswith("stdio")])
async def test_large_arguments_and_results_pass_whole(way):
    given = {"text": "x" * 1_500_000}
    async with way.linked(max_result_bytes=8 * MIB) as link:
        assert (await call(link, "echo", given))["structuredContent"] == given


@over(["http, handshake, events", "sse"])
async def test_a_listener_that_breaks_does_not_end_the_connection(way, caplog):
    heard = []

    def listen(method, _params):
        heard.append(method)
        raise RuntimeError("secret words")

    async with way.linked(on_notification=listen) as link:
        for name in ("first", "second"):
            known = len(heard)
            await call(link, "grow", {"name": name})
            await until(lambda known=known: len(heard) > known)
        assert (await call(link, "echo", {"a": 1}))["structuredContent"] == {"a": 1}
    assert "RuntimeError" in caplog.text and "secret" not in caplog.text


@over(WAYS)
async def test_everything_else_of_a_server_is_reached_as_well(way):
    async with way.linked() as link:
        tools = await link.request("tools/list", {}, timeout_s=20)
        prompt = await link.request(
            "prompts/get", {"name": "greet", "arguments": {"who": "Ada"}}, timeout_s=20
        )
        read = await link.request("resources/read", {"uri": "memo://ünknown"}, timeout_s=20)
        templates = await link.request("resources/templates/list", timeout_s=20)
        reference = {"type": "ref/prompt", "name": "greet"}
        completed = await link.request(
            "completion/complete",
            {"ref": reference, "argument": {"name": "who", "value": "t"}},
            timeout_s=20,
        )
    assert "echo" in [tool["name"] for tool in tools["tools"]]
    assert prompt["messages"][0]["content"]["text"] == "Greet Ada."
    assert read["contents"][0]["text"].startswith("scripted has memo://")
    assert templates["resourceTemplates"][0]["uriTemplate"] == "memo://{name}"
    assert completed["completion"]["values"] == ["two", "three"]


@over(WAYS)
async def test_the_errors_of_a_server_arrive_with_code_words_and_data(way):
    async with way.linked() as link:
        with pytest.raises(UpstreamError) as refused:
            await call(link, "refuse", {"code": 4711, "message": "Höchstens drei.", "data": {"at": [1, BIG]}})
        failed = await call(link, "fail", {"say": "No disk."})
        assert (await call(link, "echo"))["structuredContent"] == {}
    assert (refused.value.code, refused.value.message) == (4711, "Höchstens drei.")
    assert refused.value.data == {"at": [1, BIG]}
    assert failed["isError"] is True and failed["content"][0]["text"] == "No disk."


@over(TELLING)
async def test_progress_comes_in_order_under_the_token_of_the_client(way):
    client = Client()
    async with way.linked() as link:
        await call(link, "progress", {"steps": 4}, hooks=client.hooks(progress_token="client's own"))
    assert [method for method, _ in client.told] == ["notifications/progress"] * 4
    assert [params["progress"] for _, params in client.told] == [1, 2, 3, 4]
    assert {params["progressToken"] for _, params in client.told} == {"client's own"}


@over(TELLING)
async def test_a_server_is_asked_for_progress_only_where_a_client_wants_it(way):
    client = Client()
    async with way.linked() as link:
        await call(link, "progress", hooks=client.hooks())
    assert client.told == []
    assert not any("progressToken" in meta for meta in way.script.metas)


@over(TELLING)
async def test_calls_at_the_same_time_do_not_mix(way):
    clients = [Client() for _ in range(12)]
    async with way.linked() as link:
        calls = [
            call(link, "progress", {"steps": n + 1}, hooks=client.hooks(progress_token=f"t{n}"))
            for n, client in enumerate(clients)
        ]
        echoes = [call(link, "echo", {"n": n}) for n in range(12)]
        results = (await asyncio.gather(*calls, *echoes))[12:]
    assert [result["structuredContent"]["n"] for result in results] == list(range(12))
    for n, client in enumerate(clients):
        assert [params["progress"] for _, params in client.told] == list(range(1, n + 2))
        assert {params["progressToken"] for _, params in client.told} == {f"t{n}"}


@over(TELLING)
async def test_what_a_server_logs_during_a_call_reaches_its_client(way):
    client = Client()
    async with way.linked() as link:
        await call(link, "log", {"say": "half done"}, hooks=client.hooks(log_level="debug"))
    assert [(method, params["data"]) for method, params in client.told] == [
        ("notifications/message", "half done")
    ]


@over(CALLING_BACK)
async def test_a_server_may_ask_for_a_model_and_a_form_and_a_remote_one_for_roots(way):
    client = Client()
    async with way.linked(capabilities=CALLED_BACK) as link:
        sampled = await call(link, "sample", {"ask": "6 x 7?"}, hooks=client.hooks())
        elicited = await call(link, "elicit", {"ask": "Name?"}, hooks=client.hooks())
        if not way.in_process:
            with pytest.raises(UpstreamError):
                await call(link, "roots", hooks=client.hooks())
        else:
            rooted = await call(link, "roots", hooks=client.hooks())
            assert rooted["content"][0]["text"] == "file:///work"
    assert sampled["content"][0]["text"] == "model said forty-two"
    assert elicited["content"][0]["text"] == 'accept {"name": "Ada"}'
    asked = [method for method, _ in client.asked]
    assert asked[:2] == ["sampling/createMessage", "elicitation/create"]
    assert asked[2:] == ([] if not way.in_process else ["roots/list"])
    assert client.asked[0][1]["messages"][0]["content"]["text"] == "6 x 7?"


@over(CALLING_BACK)
async def test_a_client_that_refuses_or_is_not_there_refuses_the_server(way):
    client = Client(answers={"sampling/createMessage": UpstreamError(-1, "The user said no.", {"by": "Ada"})})
    async with way.linked(capabilities=CALLED_BACK) as link:
        with pytest.raises(UpstreamError) as refused:
            await call(link, "sample", hooks=client.hooks())
        with pytest.raises(UpstreamError) as alone:
            await call(link, "sample")
    assert (refused.value.code, refused.value.message) == (-1, "The user said no.")
    assert alone.value.code == -32601


@over(CALLING_BACK)
async def test_a_client_that_breaks_leaves_no_server_waiting(way):
    client = Client(answers={"sampling/createMessage": RuntimeError("secret words")})
    async with way.linked(capabilities=CALLED_BACK) as link:
        with pytest.raises(UpstreamError) as broken:
            await call(link, "sample", hooks=client.hooks())
    assert "secret" not in broken.value.message


@over(CALLING_BACK)
async def test_questions_without_a_client_of_their_own_go_to_the_owner_of_the_link(way):
    owner = Client()
    async with way.linked(capabilities=CALLED_BACK, on_request=owner.ask) as link:
        result = await call(link, "sample")
    assert result["content"][0]["text"] == "model said forty-two"
    assert [method for method, _ in owner.asked] == ["sampling/createMessage"]


@over(WAYS)
async def test_a_cancelled_call_is_cancelled_at_the_server(way):
    async with way.linked() as link:
        task = asyncio.create_task(call(link, "slow"))
        if way.in_process:
            await until(lambda: ("tools/call", "slow") in way.script.calls)
        else:
            await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if way.in_process and "stateless_http" not in str(way.settings):
            assert (await call(link, "echo", {"still": "here"}))["structuredContent"] == {"still": "here"}


@over([way for way in WAYS if way.startswith(("http, modern, events", "http, handshake, events", "sse"))])
async def test_the_server_stops_working_on_what_was_cancelled_or_late(way):
    async with way.linked() as link:
        task = asyncio.create_task(call(link, "slow"))
        await until(lambda: ("tools/call", "slow") in way.script.calls)
        assert way.script.cancelled == []
        task.cancel()
        await until(lambda: way.script.cancelled == ["slow"])
        with pytest.raises(DeadlineExceededError):
            await call(link, "slow", timeout_s=0.2)
        await until(lambda: way.script.cancelled == ["slow", "slow"])


@over(HEARING)
async def test_a_changed_list_is_heard(way):
    unasked = Unasked()
    async with way.linked(on_notification=unasked) as link:
        await call(link, "grow", {"name": "brand_new"})
        await until(lambda: "notifications/tools/list_changed" in unasked.methods())
        tools = await link.request("tools/list", timeout_s=20)
    assert "brand_new" in [tool["name"] for tool in tools["tools"]]
    assert all("_meta" not in params for _, params in unasked.heard)


@over(["http, modern, events"])
async def test_resources_are_followed_over_the_stream_of_the_modern_revision(way):
    unasked = Unasked()
    async with way.linked(on_notification=unasked) as link:
        await link.listen({"memo://one"})
        await asyncio.to_thread(way.script.announce, "memo://two")
        await asyncio.to_thread(way.script.announce, "memo://one")
        await until(lambda: unasked.heard)
        assert unasked.heard == [("notifications/resources/updated", {"uri": "memo://one"})]
        await link.listen(["memo://two"])
        await asyncio.to_thread(way.script.announce, "memo://one")
        await asyncio.to_thread(way.script.announce, "memo://two")
        await until(lambda: len(unasked.heard) > 1)
        assert unasked.heard[1:] == [("notifications/resources/updated", {"uri": "memo://two"})]
        await link.listen([])
        await asyncio.to_thread(way.script.announce, "memo://two")
        await asyncio.to_thread(way.script.announce, "tools")
        await until(lambda: len(unasked.heard) > 2)
        assert unasked.methods()[2:] == ["notifications/tools/list_changed"]


@over(["http, handshake, events", "sse"])
async def test_resources_are_followed_by_subscription_in_the_handshake_revision(way):
    unasked = Unasked()
    async with way.linked(on_notification=unasked) as link:
        await link.listen({"memo://one"})
        await link.request("resources/subscribe", {"uri": "memo://one"}, timeout_s=20)
        await asyncio.to_thread(way.script.announce, "memo://one")
        await until(lambda: ("notifications/resources/updated", {"uri": "memo://one"}) in unasked.heard)


@over(["http, modern, events", "http, handshake, events"])
async def test_metadata_of_the_client_goes_on_but_what_is_meant_for_this_hop(way):
    key = "io.modelcontextprotocol/"
    meta = {
        "traceparent": "00-1",
        "progressToken": "client's",
        f"{key}clientInfo": {"name": "other", "version": "9"},
        f"{key}protocolVersion": "1999-01-01",
    }
    params = {"name": "echo", "arguments": {}, "_meta": meta}
    client = Client()
    hooks = client.hooks(meta={"extra": 1}, capabilities={"sampling": {}}, log_level="error")
    async with way.linked() as link:
        await link.request("tools/call", params, hooks=hooks, timeout_s=20)
        seen = dict(way.script.metas[-1])
        assert (seen.pop("traceparent"), seen.pop("extra")) == ("00-1", 1)
        if link.modern:
            assert seen.pop(f"{key}clientInfo")["name"] == "sluice"
            assert seen.pop(f"{key}protocolVersion") == "2026-07-28"
            assert seen.pop(f"{key}clientCapabilities") == {"sampling": {}}
            assert seen.pop(f"{key}logLevel") == "error"
    assert seen == {}
    assert meta["progressToken"] == "client's", "what the caller gave is not changed"
