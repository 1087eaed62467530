"""Middlewares over REST: list them, invoke one."""

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.auth import (
    CallerDep,
    InfoDep,
    RouteServices,
    ServicesDep,
    counted,
    info_of,
    json_object,
    new_router,
    services_of,
)
from app.api.errors import answer_of
from app.core.access import Role
from app.core.errors import InvalidArgumentsError, ServiceError
from app.core.offload import off_loop
from app.core.strictjson import dumps
from app.edge.facts import INVOKE_PREFIX, RequestFacts, facts_of
from app.edge.limits import needs
from app.services.invoke.invoke import MiddlewareListing

_MEMBERS: Final = frozenset({"arguments", "context"})
_NONE: Final = dict[str, Any]()
_JSON: Final = "application/json"
_NAME: Final = r"[a-z][a-z0-9_]{0,63}"
_PATH: Final = re.compile(f"{re.escape(INVOKE_PREFIX)}({_NAME})/invoke")

Name = Annotated[
    str,
    Path(description="Name of the middleware.", examples=["pii_redaction"], pattern=f"^{_NAME}$"),
]

router = new_router("/middleware", "middleware", invokes=True)

_ITEM: Final = {
    "description": "A context item: an MCP content block, a message `{role, content}`, a tool_use or a "
    "tool_result; items of other types pass through unchanged and are counted.",
    "type": "object",
    "additionalProperties": True,
}
_LIST_SCHEMA: Final = {
    "type": "object",
    "required": ["middleware"],
    "properties": {
        "middleware": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "description", "phase", "inputSchema"],
                "properties": {
                    "name": {"type": "string"},
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "phase": {
                        "enum": ["outbound", "inbound"],
                        "description": "outbound: before the model; inbound: after it.",
                    },
                    "inputSchema": {
                        "type": "object",
                        "additionalProperties": True,
                        "description": "JSON Schema of `arguments`.",
                    },
                },
            },
        }
    },
}
_INVOKE_SCHEMA: Final = {
    "type": "object",
    "required": ["context"],
    "additionalProperties": False,
    "properties": {
        "arguments": {
            "type": "object",
            "additionalProperties": True,
            "description": "Arguments that match the middleware's inputSchema.",
        },
        "context": {"type": "array", "items": _ITEM},
    },
}
_RESULT_SCHEMA: Final = {
    "type": "object",
    "required": ["content", "metadata"],
    "properties": {
        "content": {
            "type": "array",
            "items": _ITEM,
            "description": "The transformed items, in the shape of the context.",
        },
        "metadata": {
            "type": "object",
            "additionalProperties": True,
            "description": "Details of the run; they depend on the middleware.",
        },
    },
}
_EXAMPLES: Final = {
    "text": {
        "summary": "Redact a text",
        "value": {"context": [{"type": "text", "text": "Contact Jane Smith at jane.smith@example.com."}]},
    },
    "conversation": {
        "summary": "Redact a conversation in a scope of its own",
        "value": {
            "arguments": {"scope": "conversation-1"},
            "context": [
                {"role": "user", "content": "I am Jane Smith, who am I?"},
                {"role": "assistant", "content": [{"type": "text", "text": "You are Jane Smith."}]},
            ],
        },
    },
}


def described(schema: dict[str, Any], examples: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an OpenAPI content map of JSON with ``schema``."""
    content: dict[str, Any] = {"schema": schema}
    if examples is not None:
        content["examples"] = examples
    return {_JSON: content}


@router.get(
    "",
    summary="List the middlewares that the caller may invoke",
    dependencies=[Depends(counted)],
    response_class=Response,
    responses={200: {"description": "The middlewares.", "content": described(_LIST_SCHEMA)}},
)
async def list_middleware(caller: CallerDep, services: ServicesDep, info: InfoDep) -> Response:
    """Return the same entries as `middleware/list` over MCP, sorted by name."""
    listed = await services.invoke.list(caller, info)
    return Response(dumps({"middleware": [_entry(info) for info in listed]}), media_type=_JSON)


@router.post(
    "/{name}/invoke",
    summary="Transform a context",
    response_class=Response,
    responses={200: {"description": "The transformed context.", "content": described(_RESULT_SCHEMA)}},
    openapi_extra={"requestBody": {"required": True, "content": described(_INVOKE_SCHEMA, _EXAMPLES)}},
)
@needs(Role.INVOKER, Role.RESTORER, action="middleware.invoke")
async def invoke_middleware(name: Name, request: Request, caller: CallerDep) -> Response:
    """Run one middleware on `context` and return items of the same shape. The call is recorded before the response."""
    services, info, facts = services_of(request), info_of(request), facts_of(request.scope)
    arguments, context = _invocation(request)
    if name in services.invoke.registry.middlewares:
        facts.middleware = name
    result = await services.invoke.invoke(caller, name, arguments, context, info)
    size = facts.bytes_in
    body = await off_loop(size, dumps, {"content": result.content, "metadata": result.metadata})
    return Response(body, media_type=_JSON)


@dataclass(frozen=True, slots=True)
class OrdinaryRoute:
    """Raw ASGI endpoint of an ordinary invocation; everything else, and every fault of a request, goes to ``general``.

    It does what ``invoke_middleware`` does, without looking for the route and its dependencies.
    """

    services: RouteServices
    general: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request whose path begins as that of an invocation."""
        facts = facts_of(scope)
        name = _ordinary_name(scope, facts)
        if name is None or facts.caller is None:
            await self.general(scope, receive, send)
            return
        scope["route"] = _ROUTE  # the logs name requests by the template of their path
        invoke, value = self.services.invoke, facts.json
        if name in invoke.registry.middlewares:
            facts.middleware = name
        try:
            answer = await invoke.invoke(
                facts.caller, name, value.get("arguments", {}), value["context"], facts.info(math.inf)
            )
        except ServiceError as error:
            await answer_of(error, facts)(scope, receive, send)
            return
        content = answer.encoded or await off_loop(facts.bytes_in, dumps, answer.content)
        metadata = await off_loop(facts.bytes_in, dumps, answer.metadata) if answer.metadata else b"{}"
        body = b'{"content":%b,"metadata":%b}' % (content, metadata)
        headers = [(b"content-length", str(len(body)).encode()), (b"content-type", _JSON.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


_ROUTE: Final = next(
    route for route in router.routes if getattr(route, "endpoint", None) is invoke_middleware
)


def _ordinary_name(scope: Scope, facts: RequestFacts) -> str | None:
    """Return the name of the middleware that an ordinary request invokes, None for every other request."""
    value = facts.json
    if (
        scope["method"] != "POST"
        or scope.get("query_string")
        or scope.get("root_path")
        or type(value) is not dict
        or not value.keys() <= _MEMBERS
        or type(value.get("arguments", _NONE)) is not dict
        or type(value.get("context")) is not list
    ):
        return None
    path = _PATH.fullmatch(facts.path)
    return path[1] if path is not None else None


def _invocation(request: Request) -> tuple[dict[str, Any], Any]:
    body = json_object(request, _MEMBERS)
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict):
        raise InvalidArgumentsError("arguments must be an object.", details={"pointer": "/arguments"})
    if not isinstance(body.get("context"), list):
        raise InvalidArgumentsError("context must be a list of items.", details={"pointer": "/context"})
    return arguments, body["context"]


def _entry(info: MiddlewareListing) -> dict[str, Any]:
    return {
        "name": info.name,
        "title": info.title,
        "description": info.description,
        "phase": info.phase,
        "inputSchema": info.input_schema,
    }
