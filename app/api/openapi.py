"""The OpenAPI document, good enough to generate clients from: short operation ids, examples, named records."""

import re
from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.api.openapi_examples import TEXT_EXAMPLES, example_of
from app.edge.problems import PROBLEM_TYPE, PROBLEMS

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_JSON: Final = "application/json"
_COMPONENTS: Final = "#/components/schemas/"
_PROBLEM: Final = {
    "type": "object",
    "description": "Problem details (RFC 9457); nothing of the request's content is repeated.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:sluice:error:not_found"]},
        "title": {"type": "string", "examples": ["Not found"]},
        "status": {"type": "integer", "examples": [404]},
        "detail": {"type": "string", "description": "A sentence for people.", "examples": ["No such key."]},
        "code": {"enum": sorted(PROBLEMS), "description": "Stable, for programs.", "examples": ["not_found"]},
        "request_id": {
            "type": "string",
            "description": "Also in X-Request-Id and in the log.",
            "examples": ["01a2065b-2d17-7095-bae5-fe5395863f1c"],
        },
        "pointer": {"type": "string", "description": "JSON pointer to the fault.", "examples": ["/roles/0"]},
        "details": {"type": "object", "additionalProperties": True, "examples": [{}]},
    },
}


def _record(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "required": [name],
        "additionalProperties": False,
        "properties": {name: schema},
    }


_TEXT: Final = {"type": "string", "examples": ["Hello [PERSON_1]!"]}
_RECORDS: Final = {
    "StreamArguments": _record(
        "arguments", {"type": "object", "additionalProperties": True}, "The first record of a stream."
    ),
    "StreamText": _record("text", _TEXT, "A piece of text of a stream."),
    "RestoredText": _record("text", _TEXT, "A piece of restored text."),
    "RestoredEnd": _record("done", {"const": True}, "Everything was restored."),
    "RestoredError": _record("error", {"$ref": f"{_COMPONENTS}Problem"}, "The stream failed."),
}
"""Records of streams: one a line of application/x-ndjson, or the data of one server-sent event."""


def document_of(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, made once; every failure has the form of a problem document."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas["Problem"] = _PROBLEM
        schemas |= _RECORDS
        for path, method, operation in _operations(document):
            operation["operationId"] = _short(operation["operationId"], path, method)
            responses = operation["responses"]
            responses.pop("422", None)
            problem = {"schema": {"$ref": f"{_COMPONENTS}Problem"}}
            responses["default"] = {"description": "Refused or failed.", "content": {PROBLEM_TYPE: problem}}
            for content in _contents(operation):
                _add_examples(content, schemas)
        _open_objects(document)
        app.openapi_schema = document
    return app.openapi_schema


def _operations(document: dict[str, Any]) -> Iterable[tuple[str, str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        yield from ((path, method, operations[method]) for method in _METHODS if method in operations)


def _short(operation_id: str, path: str, method: str) -> str:
    """Return the name of the route's function in camel case; FastAPI appends path and method to it."""
    name = operation_id.removesuffix(re.sub(r"\W", "_", path) + f"_{method}")
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _contents(operation: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for holder in (operation.get("requestBody") or {}, *operation["responses"].values()):
        yield from (content for content in [holder.get("content")] if content)


def _add_examples(content: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Give every media type an example that has none of its own, apart from files that are no text."""
    for kind, media in content.items():
        if "example" in media or "examples" in media:
            continue
        if kind in {_JSON, PROBLEM_TYPE}:
            media["example"] = example_of(media["schema"], schemas)
        elif kind in TEXT_EXAMPLES:
            media["example"] = TEXT_EXAMPLES[kind]


def _open_objects(schema: Any) -> None:
    """Say of an object without members of its own that it may have any: generators read that as none."""
    if isinstance(schema, list):
        for value in schema:
            _open_objects(value)
    elif isinstance(schema, dict):
        if schema.get("type") == "object" and not {"properties", "additionalProperties"} & schema.keys():
            schema["additionalProperties"] = True
        for name, value in schema.items():
            if name not in {"example", "examples", "default", "const", "enum"}:
                _open_objects(value)
