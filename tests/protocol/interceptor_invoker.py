"""The smallest invoker of the interceptor proposal: it orders by descriptors and routes by mode and failure rule."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.protocol.mcp_wire import Wire


@dataclass
class Released:
    """What came of one event: the payload that may pass, or who blocked it; and who was asked, in order."""

    payload: Any
    blocked: str | None = None
    asked: list[str] = field(default_factory=list)


def priority(descriptor: Mapping[str, Any], phase: str) -> int:
    hint = descriptor.get("priorityHint", 0)
    return int(hint if isinstance(hint, int) else hint.get(phase, 0))


def selected(descriptors: Iterable[Mapping[str, Any]], event: str, phase: str) -> list[Mapping[str, Any]]:
    """Return those that hook the event, mutations in their order, then validations by name."""
    hooking = [
        one
        for one in descriptors
        if any(event in hook["events"] and hook["phase"] == phase for hook in one["hooks"])
    ]
    mutations = [one for one in hooking if one["type"] == "mutation"]
    mutations.sort(key=lambda one: (priority(one, phase), one["name"]))
    return [
        *mutations,
        *sorted((one for one in hooking if one not in mutations), key=lambda one: str(one["name"])),
    ]


async def send(
    wire: Wire, names: set[str], event: str, payload: Any, config: Mapping[str, Any] | None = None
) -> Released:
    """Let ``names`` of the listed interceptors govern a payload that is about to be sent."""
    listed = (await wire.call("interceptors/list", event=event)).result["interceptors"]
    released = Released(payload)
    for one in selected([found for found in listed if found["name"] in names], event, "request"):
        name, observes = one["name"], one.get("mode") == "audit"
        params = {"name": name, "event": event, "phase": "request", "payload": released.payload}
        params["config"] = (config or {}).get(name, {})
        released.asked.append(name)
        headers = wire.headers("interceptor/invoke") | ({"mcp-name": name} if wire.modern else {})
        reply = await wire.post(wire.body("interceptor/invoke", params), headers)
        failed = "error" in reply.message
        denied = not failed and not reply.result.get("valid", True) and reply.result["severity"] == "error"
        if not observes and ((failed and not one.get("failOpen")) or denied):
            return Released(payload, name, released.asked)
        if not failed and not observes and one["type"] == "mutation":
            released.payload = reply.result["payload"]
    return released
