"""Hosts that know the standard's methods only see through the service what the servers behind it give them directly."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_node import BIN, FOLDER, installed
from tests.protocol.mcp_service import KEY
from tests.upstreams.npm import npm_servers

Operation = tuple[str, dict[str, Any]]

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
MEMBERS = dict(zip(LISTS, ("tools", "prompts", "resources", "resourceTemplates"), strict=True))
ENTITIES = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote"]}]}
LONG = {"duration": 0.2, "steps": 4}
COMPLETABLE = {"type": "ref/prompt", "name": "completable-prompt"}
SCHEMES = {"everything": "demo://", "memory": "memory://"}
UNKNOWN = "unheard-of"
TEXT = "demo://resource/dynamic/text/"


def operations(folder: Path) -> dict[str, list[Operation]]:
    """Return what a host does with each server, under the server's own names."""
    lists = [(method, {}) for method in LISTS]
    everything = [
        *lists,
        ("tools/call", {"name": "echo", "arguments": {"message": "Grüße 😀"}}),
        ("tools/call", {"name": "get-sum", "arguments": {"a": 40, "b": 2.5}}),
        ("tools/call", {"name": "get-sum", "arguments": {"a": "forty"}}),
        ("tools/call", {"name": "get-structured-content", "arguments": {"location": "Chicago"}}),
        ("tools/call", {"name": "get-tiny-image", "arguments": {}}),
        ("tools/call", {"name": "get-annotated-message", "arguments": {"messageType": "error"}}),
        ("tools/call", {"name": "get-resource-links", "arguments": {"count": 2}}),
        ("tools/call", {"name": "trigger-long-running-operation", "arguments": LONG}),
        ("tools/call", {"name": UNKNOWN, "arguments": {}}),
        ("prompts/get", {"name": "simple-prompt"}),
        ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Bonn", "state": "NRW"}}),
        ("prompts/get", {"name": "args-prompt", "arguments": {}}),
        ("prompts/get", {"name": UNKNOWN}),
        ("resources/read", {"uri": "demo://resource/static/document/architecture.md"}),
        ("resources/read", {"uri": f"{TEXT}7"}),
        ("resources/read", {"uri": "demo://resource/dynamic/blob/7"}),
        ("resources/read", {"uri": f"{TEXT}none"}),
        ("resources/read", {"uri": f"demo://{UNKNOWN}"}),
        completion(COMPLETABLE, "department", "S"),
        completion(COMPLETABLE, "name", "", {"department": "Sales"}),
        completion({"type": "ref/resource", "uri": f"{TEXT}{{resourceId}}"}, "resourceId", "7"),
        completion({"type": "ref/prompt", "name": UNKNOWN}, "name", ""),
    ]
    filesystem = [
        lists[0],
        ("tools/call", {"name": "read_text_file", "arguments": {"path": str(folder / "hello.txt")}}),
        ("tools/call", {"name": "list_directory", "arguments": {"path": str(folder / "sub")}}),
        ("tools/call", {"name": "read_text_file", "arguments": {"path": "/etc/passwd"}}),
        ("tools/call", {"name": "read_media_file", "arguments": {"path": str(folder / "dot.png")}}),
    ]
    memory = [
        lists[0],
        lists[2],
        ("resources/read", {"uri": "memory://knowledge-graph"}),
        ("tools/call", {"name": "create_entities", "arguments": ENTITIES}),
        ("tools/call", {"name": "read_graph", "arguments": {}}),
        ("tools/call", {"name": "search_nodes", "arguments": {"query": "Ada"}}),
        ("tools/call", {"name": "create_entities", "arguments": {"entities": 7}}),
        ("tools/call", {"name": "delete_entities", "arguments": {"entityNames": ["Ada"]}}),
    ]
    return {"everything": everything, "filesystem": filesystem, "memory": memory}


def completion(
    ref: dict[str, Any], name: str, value: str, context: Mapping[str, str] | None = None
) -> Operation:
    given = {"context": {"arguments": context}} if context else {}
    return "completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **given}


def exposed(server: str, operation: Operation) -> Operation:
    """Return the operation with the name that the service gives the primitive."""
    method, params = operation
    if "name" in params:
        params = {**params, "name": f"{server}__{params['name']}"}
    if "name" in params.get("ref", {}):
        params = {**params, "ref": {**params["ref"], "name": f"{server}__{params['ref']['name']}"}}
    return method, params


def seen(server: str, method: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what lies between any two: times, and the prefix of one server's names."""
    if method in MEMBERS and "result" in answer:
        kept = [own(server, one) for one in answer["result"][MEMBERS[method]] if belongs(server, method, one)]
        answer = {"result": {MEMBERS[method]: kept}}
    elif "result" in answer:
        # The service's own words about itself, its caching and its revision are no part of the server's answer.
        ours = {"_meta", "resultType", "ttlMs", "cacheScope"}
        answer = {"result": {key: value for key, value in answer["result"].items() if key not in ours}}
    if "progress" in answer.get("result", {}):
        # Clients read the last step and the result at once, and some then lose the step.
        answer["result"]["progress"] = answer["result"]["progress"][: LONG["steps"] - 1]
    blob = answer.get("result", {}).get("contents", [{}])[0].get("blob")
    written = json.dumps(answer).replace(blob, "…") if blob else json.dumps(answer)
    return json.loads(re.sub(r"\d+:\d\d:\d\d( [AP]M)?", "…", written))


def belongs(server: str, method: str, definition: dict[str, Any]) -> bool:
    if method == "resources/list":
        return definition["uri"].startswith(SCHEMES[server])
    return "__" not in definition["name"] or definition["name"].startswith(f"{server}__")


def own(server: str, definition: dict[str, Any]) -> dict[str, Any]:
    # Clients of the modern revision drop "execution", which belongs to the tasks of the revision before.
    kept = {key: value for key, value in definition.items() if key != "execution"}
    return {**kept, "name": definition["name"].removeprefix(f"{server}__")}


class TypeScript:
    """A host on the TypeScript SDK."""

    def __init__(self, generation: str, mode: str) -> None:
        self.arguments = (generation, mode)

    async def run(self, target: dict[str, Any], wanted: list[Operation]) -> list[dict[str, Any]]:
        process = await asyncio.create_subprocess_exec(
            BIN / "node",
            FOLDER / "clients" / "host.ts",
            *self.arguments,
            cwd=FOLDER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        steps = [{"method": method, "params": params} for method, params in wanted]
        asked = json.dumps({"target": target, "operations": steps}).encode()
        try:
            async with asyncio.timeout(120):
                printed, complaints = await process.communicate(asked)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, complaints.decode()
        found: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])
        return found


class Python:
    """A host on the Python SDK."""

    def __init__(self, mode: str) -> None:
        self.mode: Any = mode

    async def run(self, target: dict[str, Any], wanted: list[Operation]) -> list[dict[str, Any]]:
        if "url" not in target:
            transport = stdio_client(StdioServerParameters(**target))
            async with Client(transport, mode=self.mode) as client:
                return [await self.answer(client, *one) for one in wanted]
        headers = {"authorization": f"Bearer {target['key']}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(target["url"], http_client=http), mode=self.mode) as client,
        ):
            return [await self.answer(client, *one) for one in wanted]

    async def answer(self, client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": await self.done(client, method, params)}
        except MCPError as error:
            return {"error": error.error.model_dump(mode="json", exclude_none=True)}

    async def done(self, client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method in MEMBERS:
            return {MEMBERS[method]: await self.pages(client, method)}
        progress: list[Any] = []

        async def told(step: float, total: float | None, _message: str | None) -> None:
            progress.append([step, total])

        if method == "tools/call":
            result: Any = await client.call_tool(**params, progress_callback=told)
        elif method == "prompts/get":
            result = await client.get_prompt(**params)
        elif method == "resources/read":
            result = await client.read_resource(**params)
        else:
            kind = PromptReference if params["ref"]["type"] == "ref/prompt" else ResourceTemplateReference
            context = params.get("context", {}).get("arguments")
            result = await client.complete(kind(**params["ref"]), params["argument"], context)
        shown = plain(result)
        return {**shown, "progress": progress} if method == "tools/call" else shown

    async def pages(self, client: Client, method: str) -> list[Any]:
        name = {"resources/templates/list": "resource_templates"}.get(method, method.partition("/")[0])
        found, cursor = [], None
        while True:
            page = await getattr(client, f"list_{name}")(cursor=cursor)
            found += plain(page)[MEMBERS[method]]
            cursor = page.next_cursor
            if cursor is None:
                return found


def plain(result: Any) -> dict[str, Any]:
    shown: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return shown


HOSTS = {
    "python, handshake": Python("legacy"),
    "python, modern": Python("auto"),
    "typescript 1": TypeScript("1", "legacy"),
    "typescript 2, handshake": TypeScript("2", "legacy"),
    "typescript 2, modern": TypeScript("2", "auto"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "files"
    (found / "sub").mkdir(parents=True)
    (found / "hello.txt").write_text("hello")
    (found / "sub" / "one.txt").write_text("1")
    (found / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    installed()
    return found


@pytest.mark.parametrize("name", HOSTS)
async def test_a_host_sees_through_the_service_what_it_sees_directly(
    name: str, folder: Path, tmp_path: Path
) -> None:
    host, entries, wanted = HOSTS[name], npm_servers(folder), operations(folder)
    direct = {server: await host.run(entries[server], wanted[server]) for server in wanted}
    (folder / "memory.jsonl").unlink(missing_ok=True)
    async with aggregated(tmp_path, entries) as (url, _):
        steps = [(server, one) for server in wanted for one in wanted[server]]
        target = {"url": url, "key": str(KEY)}
        answers = await host.run(target, [exposed(*step) for step in steps])

    expected = [answer for server in wanted for answer in direct[server]]
    for (server, (method, params)), answer, before in zip(steps, answers, expected, strict=True):
        if UNKNOWN in json.dumps(params):
            # The service refuses what no list has in words of its own.
            assert answer["error"]["code"] == -32602
            assert "error" in before or before["result"]["isError"]
        else:
            assert seen(server, method, answer) == seen(server, method, before), (server, method, params)
