"""What a request carries beside its parameters: ``_meta`` and, in the modern revision, headers that mirror it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app import __version__
from app.core.upstream import Hooks
from app.upstream.transport.mirroring import HeaderMap, header_map, param_headers
from app.upstream.transport.options import SchemaOf

CLIENT_INFO: Final[Mapping[str, str]] = {"name": "sluice", "title": "Sluice", "version": __version__}
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 - a member's name
_OF_ONE_HOP: Final = frozenset(
    {
        PROGRESS_TOKEN,
        PROTOCOL_VERSION_META_KEY,
        CLIENT_INFO_META_KEY,
        CLIENT_CAPABILITIES_META_KEY,
        LOG_LEVEL_META_KEY,
    }
)
"""Members of ``_meta`` that our client sent to us and that mean nothing to the server behind us."""

_Params = Mapping[str, Any]


@dataclass(slots=True)
class Envelope:
    """Wraps requests for one revision; ``version`` is None before one is agreed on."""

    version: str | None = None
    schema_of: SchemaOf | None = None
    _mirrored: dict[str, tuple[_Params, HeaderMap]] = field(default_factory=dict)

    @property
    def modern(self) -> bool:
        """Whether each request stands for itself."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def wrapped(self, number: int, params: _Params, hooks: Hooks) -> dict[str, Any]:
        """Return the parameters as the server gets them; they request progress under our own request's number."""
        sent_meta = params.get("_meta")
        meta = {key: value for key, value in sent_meta.items() if key not in _OF_ONE_HOP} if sent_meta else {}
        meta.update(hooks.meta)
        if hooks.progress_token is not None and hooks.notify is not None:
            meta[PROGRESS_TOKEN] = number
        if self.modern:
            meta[PROTOCOL_VERSION_META_KEY] = self.version
            meta[CLIENT_INFO_META_KEY] = CLIENT_INFO
            meta[CLIENT_CAPABILITIES_META_KEY] = dict(hooks.capabilities)
            if hooks.log_level is not None:
                meta[LOG_LEVEL_META_KEY] = hooks.log_level
        wrapped = {**params, "_meta": meta}
        if not meta:
            del wrapped["_meta"]
        return wrapped

    def headers(self, method: str, params: _Params) -> dict[str, str]:
        """Return the HTTP headers that repeat what the body says."""
        if self.version is None:
            return {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if not self.modern:
            return headers
        headers[MCP_METHOD_HEADER] = method
        named = NAME_BEARING_METHODS.get(method)
        if named is not None and isinstance(name := params.get(named), str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call" and self.schema_of is not None:
                arguments = params.get("arguments")
                schema = self.schema_of(name)
                mirrored = self._mirrored_of(name, schema)
                if schema is not None and mirrored and isinstance(arguments, Mapping):
                    headers.update(param_headers(schema, mirrored, arguments))
        return headers

    def _mirrored_of(self, tool: str, schema: _Params | None) -> HeaderMap:
        """Return which arguments of the tool are mirrored, worked out once per schema."""
        if schema is None:
            self._mirrored.pop(tool, None)
            return {}
        cached = self._mirrored.get(tool)
        if cached is not None and cached[0] is schema:
            return cached[1]
        mirrored = header_map(schema)
        self._mirrored[tool] = (schema, mirrored)
        return mirrored
