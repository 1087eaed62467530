"""Plain fixtures that the official conformance suite prescribes: contents, schemas, prompts and resources."""

from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="

IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def resource(uri: str, mime_type: str, value: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": value}}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        result["required"] = list(required)
    return result


STRING = {"type": "string"}

STATIC_RESULTS: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "json_schema_2020_12_tool": [text("ok")],
    "test_custom_header": [text("ok")],
    "test_comes_and_goes": [text("ok")],
}

JSON_SCHEMA_TOOL = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": STRING, "city": STRING},
        }
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

HEADER_VALUES = ["Hello", "SGVsbG8=", "=?base64?SGVsbG8="]
"""What the suite sends as a parameter that is repeated in a header: free text there would be quarantined."""

SCHEMAS: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": JSON_SCHEMA_TOOL,
    "test_custom_header": schema(region={**STRING, "enum": HEADER_VALUES, "x-mcp-header": "Region"}),
    "test_sampling": schema("prompt", prompt=STRING),
    "test_elicitation": schema("message", message=STRING),
}

ELICITATIONS: dict[str, dict[str, Any]] = {
    "test_elicitation": schema("username", "email", username=STRING, email=STRING),
    "test_elicitation_sep1034_defaults": schema(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    ),
    "test_elicitation_sep1330_enums": schema(
        untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
        titledSingle={
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
            ],
        },
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        titledMulti={
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                ]
            },
        },
    ),
}

RESOURCES = [
    {
        "uri": "test://static-text",
        "name": "static-text",
        "description": "A static text.",
        "mimeType": "text/plain",
    },
    {
        "uri": "test://static-binary",
        "name": "static-binary",
        "description": "A static image.",
        "mimeType": "image/png",
    },
    {
        "uri": "test://watched-resource",
        "name": "watched-resource",
        "description": "A text that changes.",
        "mimeType": "text/plain",
    },
]

TEMPLATES = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data by id.",
        "mimeType": "application/json",
    }
]

PROMPTS = [
    {"name": "test_simple_prompt", "description": "A prompt without arguments."},
    {
        "name": "test_prompt_with_arguments",
        "description": "A prompt with two arguments.",
        "arguments": [
            {"name": "arg1", "description": "First test argument", "required": True},
            {"name": "arg2", "description": "Second test argument", "required": True},
        ],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt with a resource.",
        "arguments": [
            {"name": "resourceUri", "description": "URI of the resource to embed", "required": True}
        ],
    },
    {"name": "test_prompt_with_image", "description": "A prompt with an image."},
    {"name": "test_input_required_result_prompt", "description": "A prompt that asks for input."},
    {"name": "test_comes_and_goes", "description": "A prompt that is not always there."},
]


def user(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def prompt_messages(name: str, given: dict[str, str]) -> list[dict[str, Any]] | None:
    if name == "test_simple_prompt":
        return [user(text("This is a simple prompt for testing."))]
    if name == "test_prompt_with_arguments":
        return [user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))]
    if name == "test_prompt_with_embedded_resource":
        embedded = resource(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
        return [user(embedded), user(text("Please process the embedded resource above."))]
    if name == "test_prompt_with_image":
        return [user(IMAGE), user(text("Please analyze the image above."))]
    return None


def resource_contents(uri: str) -> dict[str, Any] | None:
    if uri == "test://static-text":
        return {
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": PNG}
    if uri == "test://watched-resource":
        return {"uri": uri, "mimeType": "text/plain", "text": "Watched."}
    prefix, suffix = "test://template/", "/data"
    if uri.startswith(prefix) and uri.endswith(suffix):
        found = uri[len(prefix) : -len(suffix)]
        body = f'{{"id":"{found}","templateTest":true,"data":"Data for ID: {found}"}}'
        return {"uri": uri, "mimeType": "application/json", "text": body}
    return None
