"""Is this one JSON-RPC message? Checked here, because the SDK's own refusals would quote the message."""

from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import HEADER_MISMATCH, LOG_LEVEL_META_KEY, PARSE_ERROR, PROTOCOL_VERSION_META_KEY
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from app.core import strictjson
from app.core.errors import InvalidRequestError
from app.protocol.wire.errors import RefusedError
from app.protocol.wire.exchange import Fields

_NAMED_BY_US: Final = frozenset({"middleware/invoke"})


def parse_message(body: bytes) -> dict[str, Any]:
    """Return the one JSON object in ``body``; anything else is refused."""
    try:
        return the_object(strictjson.loads(body))
    except InvalidRequestError as error:
        refused = RefusedError(error.message, code=PARSE_ERROR)
    raise refused


def the_object(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is an object."""
    if isinstance(value, dict):
        return value
    raise RefusedError("Send one JSON-RPC message; batches are not served.")


def message_id(message: dict[str, Any]) -> int | str | None:
    """Return the id if it is one that an answer can carry."""
    request_id = message.get("id")
    return request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None


def is_response(message: dict[str, Any]) -> bool:
    """Return whether this is an answer to a request of the server; refuse what is no message at all."""
    if message.get("jsonrpc") != "2.0":
        raise RefusedError('A JSON-RPC message has the member "jsonrpc": "2.0".')
    if "id" in message and message_id(message) is None:
        raise RefusedError("The id of a JSON-RPC message is a string or an integer.")
    if "method" not in message:
        if "id" in message and ("result" in message or "error" in message):
            return True
        raise RefusedError("A JSON-RPC message has a method, or a result or an error with an id.")
    if not isinstance(message["method"], str):
        raise RefusedError("The method of a JSON-RPC message is a string.")
    if not isinstance(message.get("params"), dict | None):
        raise RefusedError("The params of a JSON-RPC message are an object.")
    return False


def check_modern_headers(message: dict[str, Any], headers: Fields, version: str | None) -> None:
    """Refuse headers that contradict the message, also where the SDK's own check does not look."""
    params = message.get("params") or {}
    meta_value = params.get("_meta")
    meta: dict[str, Any] = meta_value if isinstance(meta_value, dict) else {}
    claims = PROTOCOL_VERSION_META_KEY in meta
    if version is None:
        if claims:
            raise _mismatch("The header MCP-Protocol-Version is missing.")
        return
    if not claims and version not in KNOWN_PROTOCOL_VERSIONS:
        served = ", ".join(KNOWN_PROTOCOL_VERSIONS)
        raise RefusedError(f"The revision in MCP-Protocol-Version is not served here; served are {served}.")
    if claims and meta[PROTOCOL_VERSION_META_KEY] != version:
        raise _mismatch("The header MCP-Protocol-Version does not match the revision in the params.")
    if message.get("method") in _NAMED_BY_US and MCP_NAME_HEADER in headers:
        named = decode_header_value(headers[MCP_NAME_HEADER])
        if MCP_NAME_HEADER in headers.repeated or named != params.get("name"):
            raise _mismatch("The header Mcp-Name does not match the name in the params.")


def wants_stream(params: Any, *, logs: bool) -> bool:
    """Return whether a request asks for notifications: progress, or logs (``logs``: its session does)."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, Mapping):
        return logs
    return logs or "progressToken" in meta or LOG_LEVEL_META_KEY in meta


def _mismatch(message: str) -> RefusedError:
    return RefusedError(message, code=HEADER_MISMATCH)
