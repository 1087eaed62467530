"""The rule for members of a block that no table names.

Every string is text, except what the receiver of the block must find unchanged: types, roles, ids and media types
(``MACHINE``), addresses (``ADDRESSES``), encoded data (``ENCODED``) and what the provider has sealed (``SEALED``).
"""

import re
from typing import Any, Final

MACHINE: Final = frozenset(
    {
        *("type", "role", "mimeType", "mime_type", "media_type", "id", "status", "detail"),
        *("isError", "is_error", "cache_control", "cachePoint", "finish_reason", "stop_reason"),
        *("toolUseId", "tool_use_id", "tool_call_id", "call_id", "caller_id", "item_id", "response_id"),
        *(
            "previous_response_id",
            "approval_request_id",
            "conversation_id",
            "container_id",
            "file_id",
            "file_ids",
        ),
        *("vector_store_ids", "skill_id", "tool_id", "tab_id", "download_id", "connector_id", "tunnel_id"),
        *("lastModified", "signature", "thoughtSignature", "thought_signature", "model", "bucketOwner"),
        *("authorization", "authorization_token", "headers", "domain_secrets"),
    }
)
"""Members that only machines read: their strings are scanned and reported, never changed."""

ADDRESSES: Final = frozenset(
    {
        *("uri", "url", "image_url", "file_url", "server_url", "source_url", "fileUri", "file_uri"),
        *("retrievedUrl", "videoUri"),
    }
)
"""Members with an address; it is scanned, and changed only if an option allows it."""

ENCODED: Final = frozenset({"data", "bytes", "blob", "file_data", "b64_json", "partial_image_b64"})
"""Members with data in base64."""

ALWAYS_ENCODED: Final = frozenset({"bytes", "blob", "file_data", "b64_json", "partial_image_b64"})

SEALED: Final = frozenset(
    {
        *("encrypted_content", "encrypted_index", "encrypted_stdout", "redactedContent", "continuationToken"),
        *("sdkBlob", "opaque"),
    }
)
"""Members that the provider encrypted: nobody can read them, and they must come back as they are."""

SIGNATURES: Final = frozenset({"signature", "thoughtSignature", "thought_signature"})

REFERENCES: Final = frozenset({*("file_id", "s3Location", "container_id"), *ADDRESSES})
"""Members that point to contents which are not in the context."""

COUNTERS: Final = frozenset(
    {
        *("created", "created_at", "completed_at", "expires_at", "started_at", "createTime", "size", "ttlMs"),
        *(
            "index",
            "start_index",
            "end_index",
            "startIndex",
            "endIndex",
            "start_char_index",
            "end_char_index",
        ),
        *("width", "height", "duration", "seed", "bytes", "sequence_number"),
    }
)
"""Members whose numbers are times, sizes and places; they identify nobody and must stay numbers."""

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/+=;-]{0,127}|[0-9]{1,6}|")
_MANY_DIGITS: Final = re.compile(r"[0-9](?:[-. /:_]?[0-9]){8}")
_OPAQUE: Final = re.compile(r"[A-Za-z0-9+/_=\s-]{40,}")


def is_machine_word(text: str) -> bool:
    """Return whether this is one word, as machines write it, in which no number can hide; it need not be scanned."""
    return _PLAIN.fullmatch(text) is not None and _MANY_DIGITS.search(text) is None


def is_opaque(text: str) -> bool:
    """Return whether this is a long code without words, such as a signature."""
    return _OPAQUE.fullmatch(text) is not None


def media_type_of(holder: dict[str, Any]) -> str | None:
    """Return the media type that the members beside some data declare, or None."""
    for name in ("mimeType", "mime_type", "media_type"):
        if isinstance(holder.get(name), str):
            return str(holder[name])
    if holder.get("type") == "base64":
        return "application/octet-stream"
    return "audio/x" if isinstance(holder.get("format"), str) else None
