"""Progressive disclosure on the wire: the resource that describes tools, and the gate before their calls."""

from collections.abc import Mapping
from typing import Any, Final

from app.core import strictjson
from app.core.catalog.description_uri import (
    DESCRIPTIONS_TEMPLATE,
    DESCRIPTIONS_URI,
    MISSING_SELECTION,
    description_required,
    is_descriptions_uri,
    selected_tools,
)
from app.core.catalog.primitives import Primitive
from app.core.contracts.policy import Policy
from app.core.tools.disclosure import staged_for
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.state import DISCLOSURE_META, SessionState, state_of
from app.services.catalog.disclosure import DisclosureService

__all__ = ["DISCLOSED", "disclosure_resources", "gate", "is_descriptions_uri", "read_descriptions"]

DISCLOSED: Final = "disclosed"
"""Where a session or a handle remembers, by exposed name, the digests of the definitions that were read."""

_MAX_REMEMBERED: Final = 2000
_MIME_TYPE: Final = "application/json"
_NAME: Final = "Tool Descriptions - Required for tool use"
_WORKFLOW: Final = (
    "WORKFLOW: Step 1: Pick tool from tools/list based on what it does. "
    f"Step 2: Fetch full description: {DESCRIPTIONS_URI}?tools=TOOL_NAME. "
    "Step 3: Call tool with parameters learned. Must specify ?tools= parameter when fetching. "
    "tools/list is for selection: its short descriptions are enough to choose a tool, and its input schemas are left "
    "open. Parameters, examples and errors are learned here and nowhere else. "
    f"Fetch several at once with commas: {DESCRIPTIONS_URI}?tools=TOOL1,TOOL2. "
    "Names are exactly those of tools/list, percent-encoded where a URI needs it. "
    "Fetching authorizes those tools for the rest of the session, so each is fetched once. "
    "A tool that is called before its description was fetched does not run: "
    "the call fails with TOOL_DESCRIPTION_REQUIRED and names the URI to fetch."
)
_TEMPLATE_NOTE: Final = (
    "Full descriptions of the named tools: parameters, examples, errors. "
    f"`tools` is one name of tools/list or several, separated by commas, as in {DESCRIPTIONS_URI}?tools=TOOL1,TOOL2. "
    "Fetch a tool's description before its first call; that authorizes the tool for the rest of the session."
)
_NOTES: Final = frozenset({"$schema", "$id", "title", "description"})


def disclosure_resources(staged: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the resources and the templates that callers with ``staged`` tools see beside the servers' own."""
    if not staged:
        return [], []
    resource = {
        "uri": DESCRIPTIONS_URI,
        "name": _NAME,
        "title": "Tool descriptions",
        "description": _WORKFLOW,
        "mimeType": _MIME_TYPE,
    }
    template = {
        "uriTemplate": DESCRIPTIONS_TEMPLATE,
        "name": "Tool Descriptions of named tools",
        "title": "Tool descriptions",
        "description": _TEMPLATE_NOTE,
        "mimeType": _MIME_TYPE,
    }
    return [resource], [template]


async def read_descriptions(
    context: Context, service: DisclosureService, policy: Policy, tools: Mapping[str, Primitive], uri: str
) -> dict[str, Any]:
    """Answer a read of the resource and authorize the caller's session, or handle, for the tools it selects.

    ``tools`` are those that the caller may see, by exposed name. A modern client finds its handle in the result's
    ``_meta`` and sends it back there, with calls and with further reads.
    """
    exchange = exchange_of(context)
    service.count(exchange.caller, policy.limits)
    state = await state_of(context, DISCLOSURE_META)
    names = selected_tools(uri)
    if not names:
        return _contents(uri, MISSING_SELECTION)
    entries = await service.described(exchange.caller, tools, names)
    digests = {name: tools[name].digest for name in names if name in tools}
    if digests:
        await _authorize(service, state, policy, digests)
    result = _contents(uri, entries)
    if digests and state.handle is not None:
        result["_meta"] = {DISCLOSURE_META: state.handle}
    return result


async def gate(
    context: Context, service: DisclosureService, policy: Policy, tool: Primitive
) -> dict[str, Any] | None:
    """Return the result that takes the place of a call whose tool was not read about; None lets the call pass."""
    caller = exchange_of(context).caller
    if not staged_for(policy, caller, tool):
        return None
    state = await state_of(context, DISCLOSURE_META)
    if _read(state).get(tool.name) == tool.digest:
        return None
    if state.modern_revision is not None:
        without = policy.disclosure.without_handle
        if without == "off" or (without == "caller" and await service.knows(caller, tool)):
            return None
    return _refusal(tool)


async def _authorize(
    service: DisclosureService, state: SessionState, policy: Policy, digests: Mapping[str, str]
) -> None:
    caller, info = state.exchange.caller, state.exchange.info
    if state.modern_revision is not None and policy.disclosure.without_handle == "caller":
        await service.note(caller, digests, info, policy=policy)
    read = _read(state)
    new = {name: digest for name, digest in digests.items() if read.get(name) != digest}
    if new:
        await service.note(caller, new, info)
        await state.revise(
            lambda preferences: {**preferences, DISCLOSED: _with(preferences.get(DISCLOSED), new)}
        )


def _with(disclosed: Any, new: Mapping[str, str]) -> dict[str, str]:
    """Return what was read before and now, the oldest forgotten where that is too much."""
    kept = {name: digest for name, digest in (disclosed or {}).items() if name not in new}
    return dict([*kept.items(), *new.items()][-_MAX_REMEMBERED:])


def _read(state: SessionState) -> Mapping[str, str]:
    read: Mapping[str, str] = state.preferences.get(DISCLOSED) or {}
    return read


def _contents(uri: str, body: Mapping[str, Any]) -> dict[str, Any]:
    text = strictjson.dumps(body).decode()
    return {"contents": [{"uri": uri, "mimeType": _MIME_TYPE, "text": text}]}


def _refusal(tool: Primitive) -> dict[str, Any]:
    body = description_required(tool.name)
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": strictjson.dumps(body).decode()}],
        "isError": True,
    }
    if _allows(tool.definition.get("outputSchema")):
        result["structuredContent"] = body
    return result


def _allows(schema: Any) -> bool:
    """Return whether the body surely fits a tool's output schema: clients check structured content against it."""
    if schema is None:
        return True
    if not isinstance(schema, Mapping) or set(schema) - _NOTES - {
        "type",
        "properties",
        "additionalProperties",
    }:
        return False
    properties = schema.get("properties", {})
    open_ended = schema.get("additionalProperties", True) in (True, {})
    return schema.get("type", "object") == "object" and open_ended and "error" not in properties
