"""Examples of answers and bodies, put together from what each member's name says."""

from typing import Any, Final

_MEMBERS: Final[dict[str, Any]] = {
    "access": "role:invoker",
    "action": "middleware.invoke",
    "actor": "0123abcd",
    "approved_digest": "6f1c2a9b",
    "collection": "internal_docs",
    "command": "npx",
    "content": {"type": "text", "text": "Contact [PERSON_1] at [EMAIL_1]."},
    "context": {"type": "text", "text": "Contact Jane Smith at jane.smith@example.com."},
    "created_by": "0123abcd",
    "date": "2026-11-20",
    "description": "What it is for.",
    "digest": "6f1c2a9b",
    "engine": "patterns",
    "error": None,
    "external_id": "q4-notes",
    "held_scopes": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
    "handle": "PERSON_1",
    "issuer": "https://login.example.com",
    "key": "slc_0123abcd_EXAMPLEEXAMPLEEXAMPLEEXAMPLE_X",
    "key_id": "0123abcd",
    "kind": "value",
    "language": "en",
    "media_type": "text/markdown",
    "middleware": "pii_redaction",
    "mimeType": "text/markdown",
    "name": "example",
    "next": None,
    "original": "Jane Smith",
    "outcome": "created",
    "pointer": "/grants/0",
    "protocol_version": "2026-07-28",
    "reason": "callers see more tools",
    "request_id": "01a2065b-2d17-7095-bae5-fe5395863f1c",
    "scope": "conversation-1",
    "server": "crm",
    "source": "files",
    "state": "ready",
    "tenant": "default",
    "text": "Contact [PERSON_1].",
    "title": "Q4 Planning Notes",
    "type": "person",
    "uri": "https://example.com/q4",
    "url": "https://mcp.example.com",
    "when": {"groups": "llm-users"},
}
TEXT_EXAMPLES: Final = {
    "application/x-ndjson": '{"id":"01a2065b-2d17-7095-bae5-fe5395863f1c","action":"middleware.invoke"}\n',
    "application/xhtml+xml": "<html><title>Notes</title><p>Focus on EMEA.</p></html>",
    "application/yaml": "groups: []\n",
    "text/csv": "id,action\n01a2065b-2d17-7095-bae5-fe5395863f1c,middleware.invoke\n",
    "text/html": "<title>Notes</title><p>Focus on EMEA.</p>",
    "text/markdown": "# Notes\n\nFocus on EMEA.\n",
    "text/plain": "Focus on EMEA.\n",
}
_IDS: Final = {"uuid": "01a2065b-2d17-7095-bae5-fe5395863f1c", "date-time": "2026-11-23T12:00:00Z"}
_DEEPEST: Final = 12


def example_of(schema: dict[str, Any], schemas: dict[str, Any], name: str = "", depth: int = 0) -> Any:
    """Return a value that fits ``schema``: its own example where it has one, else one by the names of its members."""
    if "$ref" in schema:
        target = schema["$ref"].rpartition("/")[2]
        return example_of(schemas[target], schemas, name, depth + 1)
    if "examples" in schema:
        return _completed(schema, schemas, depth)
    for member in ("const", "default"):
        if member in schema and not _too_short(schema[member], schema):
            return schema[member]
    if "enum" in schema:
        return schema["enum"][0]
    for options in (schema.get("anyOf"), schema.get("oneOf"), schema.get("allOf")):
        if options:
            return _of_options(options, schemas, name, depth)
    return _of_type(schema, schemas, name, depth)


def _completed(schema: dict[str, Any], schemas: dict[str, Any], depth: int) -> Any:
    """Return the example of ``schema`` itself, with the members that it requires and the example leaves out."""
    value = schema["examples"][0]
    if not isinstance(value, dict):
        return value
    absent = [member for member in schema.get("required", []) if member not in value]
    members = schema.get("properties", {})
    return {**value, **{name: example_of(members[name], schemas, name, depth + 1) for name in absent}}


def _too_short(value: Any, schema: dict[str, Any]) -> bool:
    return isinstance(value, list) and len(value) < schema.get("minItems", 0)


def _of_options(options: list[dict[str, Any]], schemas: dict[str, Any], name: str, depth: int) -> Any:
    """Return an example of the first option; null where the member usually is, or where a tree would not end."""
    nullable = {"type": "null"} in options
    if nullable and (depth > _DEEPEST or _MEMBERS.get(name, "") is None):
        return None
    return example_of(options[0], schemas, name, depth + 1)


def _of_type(schema: dict[str, Any], schemas: dict[str, Any], name: str, depth: int) -> Any:
    kinds = schema.get("type", "object")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if isinstance(kinds, list) and "null" in kinds and _MEMBERS.get(name, "") is None:
        return None
    if kind == "object":
        return _object(schema, schemas, name, depth)
    if kind == "array":
        ends = depth > _DEEPEST and not schema.get("minItems")
        return [] if ends else [example_of(schema.get("items", {}), schemas, name, depth + 1)]
    if kind in {"integer", "number"}:
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return max(1, least) if kind == "integer" else max(1.0, least)
    if kind == "boolean":
        return False
    value = _MEMBERS.get(name)
    return _IDS.get(schema.get("format", ""), value if isinstance(value, str) else name or "text")


def _object(schema: dict[str, Any], schemas: dict[str, Any], name: str, depth: int) -> Any:
    members = schema.get("properties")
    if members is None:
        value = _MEMBERS.get(name)
        return value if isinstance(value, dict) else {}
    required = schema.get("required", members)
    return {
        member: example_of(described, schemas, member, depth + 1)
        for member, described in members.items()
        if depth <= _DEEPEST or member in required
    }
