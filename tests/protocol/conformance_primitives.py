"""The test-only provider of tools, prompts and resources that the conformance suite calls."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INVALID_PARAMS, LOG_LEVEL_META_KEY, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.protocol.wire.exchange import Context
from app.protocol.wire.notifications import StreamNotification
from app.protocol.wire.primitives import Method
from tests.protocol.conformance_contents import (
    ELICITATIONS,
    PROMPTS,
    RESOURCES,
    SCHEMAS,
    STATIC_RESULTS,
    TEMPLATES,
    prompt_messages,
    resource_contents,
    schema,
    text,
)
from tests.protocol.conformance_inputs import INPUT_TOOLS, answer, prompt

OTHER_TOOLS = [
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_error_handling",
    "test_sampling",
    "test_missing_capability",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
]


class ConformancePrimitives:
    """Everything the suite asks for; ``publish`` is set to the surface's own once that is built."""

    calls_back = True

    def __init__(self) -> None:
        self.publish: Callable[[StreamNotification], None] = lambda _: None
        self.tools = [*STATIC_RESULTS, *OTHER_TOOLS, *ELICITATIONS, *INPUT_TOOLS]
        self.gone: set[str] = set()

    def tool_input_schema(self, name: str) -> Mapping[str, Any] | None:
        return SCHEMAS.get(name)

    def methods(self) -> Mapping[str, Method]:
        paged = types.PaginatedRequestParams
        return {
            "tools/list": Method(paged, self.list_tools),
            "tools/call": Method(types.CallToolRequestParams, self.call_tool),
            "resources/list": Method(paged, constant("resources", RESOURCES)),
            "resources/templates/list": Method(paged, constant("resourceTemplates", TEMPLATES)),
            "resources/read": Method(types.ReadResourceRequestParams, read_resource),
            "resources/subscribe": Method(types.SubscribeRequestParams, nothing),
            "resources/unsubscribe": Method(types.UnsubscribeRequestParams, nothing),
            "prompts/list": Method(paged, self.list_prompts),
            "prompts/get": Method(types.GetPromptRequestParams, get_prompt),
            "completion/complete": Method(types.CompleteRequestParams, complete),
            "logging/setLevel": Method(types.SetLevelRequestParams, nothing),
        }

    async def list_tools(self, _context: Context, _: Any) -> dict[str, Any]:
        return {
            "tools": [
                {"name": name, "description": f"Fixture {name}.", "inputSchema": SCHEMAS.get(name, schema())}
                for name in self.tools
                if name != "test_comes_and_goes" or "tool" not in self.gone
            ]
        }

    async def list_prompts(self, _context: Context, _: Any) -> dict[str, Any]:
        gone = {"test_comes_and_goes"} if "prompt" in self.gone else set()
        return {"prompts": [one for one in PROMPTS if one["name"] not in gone]}

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        name = params.name
        if name in STATIC_RESULTS:
            return {"content": STATIC_RESULTS[name]}
        if name in INPUT_TOOLS:
            capabilities = context.session.client_capabilities
            declared = capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities else {}
            return answer(name, dict(context.params or {}), declared)
        if name in ELICITATIONS:
            return await elicitation(context, name, params.arguments or {})
        if name.startswith("test_trigger_"):
            kind = name.removeprefix("test_trigger_").removesuffix("_change")
            self.gone ^= {kind}
            self.publish(StreamNotification(f"notifications/{kind}s/list_changed"))
            return {"content": [text("Changed.")]}
        if name not in self.tools:
            raise MCPError(INVALID_PARAMS, "There is no such tool.")
        return await BEHAVIOURS[name](context, params.arguments or {})


def constant(key: str, value: Any):
    async def handle(context: Context, _: Any) -> dict[str, Any]:
        return {key: value}

    return handle


async def nothing(context: Context, _: Any) -> dict[str, Any]:
    return {}


async def complete(context: Context, _: Any) -> dict[str, Any]:
    return {"completion": {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}}


async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> dict[str, Any]:
    contents = resource_contents(str(params.uri))
    if contents is None:
        raise MCPError(INVALID_PARAMS, "Resource not found", {"uri": str(params.uri)})
    return {"contents": [contents]}


async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> dict[str, Any]:
    if params.name == "test_input_required_result_prompt":
        return prompt(dict(context.params or {}))
    messages = prompt_messages(params.name, params.arguments or {})
    if messages is None:
        raise MCPError(INVALID_PARAMS, "There is no such prompt.")
    return {"messages": messages}


async def logging_tool(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    wanted = context.protocol_version not in MODERN_PROTOCOL_VERSIONS or LOG_LEVEL_META_KEY in (
        context.meta or {}
    )
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if wanted:
            params = types.LoggingMessageNotificationParams(level="info", data=line, logger="fixture")
            await context.session.send_notification(
                types.LoggingMessageNotification(params=params), context.request_id
            )
        await asyncio.sleep(0.03)
    return {"content": [text("Logged.")]}


async def progress_tool(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await asyncio.sleep(0.03)
    return {"content": [text("Done.")]}


async def error_tool(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"isError": True, "content": [text("This tool intentionally returns an error for testing")]}


async def sampling_tool(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    content = types.TextContent(text=arguments["prompt"])
    params = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=content)], max_tokens=100
    )
    result = await context.session.send_request(
        types.CreateMessageRequest(params=params),
        types.CreateMessageResult,
        metadata=ServerMessageMetadata(related_request_id=context.request_id),
    )
    return {"content": [text(f"LLM response: {getattr(result.content, 'text', '')}")]}


async def elicitation(context: Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    message = arguments.get("message", "Please fill this in.")
    result = await context.session.elicit_form(message, ELICITATIONS[name], context.request_id)
    start = "User response:" if name == "test_elicitation" else "Elicitation completed:"
    return {"content": [text(f"{start} action={result.action}, content={result.content}")]}


async def needs_sampling(context: Context, arguments: dict[str, Any]) -> dict[str, Any]:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "This tool needs sampling.",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return {"content": [text("ok")]}


BEHAVIOURS = {
    "test_tool_with_logging": logging_tool,
    "test_logging_tool": logging_tool,
    "test_tool_with_progress": progress_tool,
    "test_error_handling": error_tool,
    "test_sampling": sampling_tool,
    "test_missing_capability": needs_sampling,
}
