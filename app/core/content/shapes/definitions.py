"""Read what a request to a model says besides its messages: definitions of tools, schemas, and an end user's id."""

from dataclasses import dataclass
from typing import Any, Final

from app.core.content.leaves import LeafPlace
from app.core.content.shapes import members
from app.core.content.walking import IDENTIFIER, Path, ValueReader

REQUEST_TYPE: Final = "dev.sluice/request"
"""The type of the item that holds such members, in ``members``."""

_WORDS: Final = members.MACHINE | {
    *(
        "name",
        "format",
        "required",
        "strict",
        "$ref",
        "$id",
        "$schema",
        "$anchor",
        "$dynamicRef",
        "contentEncoding",
    ),
    *("contentMediaType", "tool_names", "toolChoice", "tool_choice", "behavior", "syntax", "serverName"),
    *("server_url", "url", "allowed_domains", "blocked_domains", "mcp_server_name", "tool_name"),
    *("allowed_tools", "server_label", "bucket", "key", "verbosity", "effort", "size", "quality", "encoding"),
}
"""Members of a definition that name something which the receiver looks up: reported, never changed."""

_DATA: Final = frozenset({"enum", "const", "default", "examples", "example", "input_examples", "value"})
"""Members of a schema with values of the data that it describes."""

_NAMED: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "defs"}
)
"""Members of a schema whose own members are named by whoever wrote it."""

_USERS: Final = frozenset({"user", "safety_identifier", "user_id", "userId", "end_user", "user_profile_id"})
_ROLE: Final = "system"
"""Hosts write definitions, as they write system messages."""


@dataclass(frozen=True, slots=True)
class DefinitionReader:
    """Add the leaves of definitions to the reading of ``values``."""

    values: ValueReader

    def reads(self, kind: str | None) -> bool:
        """Return whether items of this type hold members of a request."""
        return kind == REQUEST_TYPE

    def read_request(self, path: Path, item: dict[str, Any]) -> None:
        """Read the members of a request; an end user's id has a place of its own."""
        inside = item.get("members")
        if not isinstance(inside, dict):
            self.values.walk((*path, "members"), inside, LeafPlace.STRUCTURED, _ROLE)
            return
        for name, value in inside.items():
            step = (*path, "members", name)
            if name == "metadata" and isinstance(value, dict):
                for key, child in value.items():
                    self._read_note((*step, key), key, child)
            elif name in _USERS and isinstance(value, str):
                self.values.add_leaf(step, value, LeafPlace.USER, _ROLE)
            else:
                self.read(step, value, _ROLE)

    def _read_note(self, path: Path, key: str, value: Any) -> None:
        """Read a member of the request's metadata, which is free but for the end user's id."""
        if key in _USERS and isinstance(value, str):
            self.values.add_leaf(path, value, LeafPlace.USER, _ROLE)
            return
        if not IDENTIFIER.fullmatch(key):
            self.values.add_leaf(path, key, LeafPlace.KEY, _ROLE, encoding="name")
        self.values.walk(path, value, LeafPlace.DEFINITION, _ROLE)

    def read(self, path: Path, value: Any, role: str | None) -> None:
        """Read a definition, a list of them or a schema."""
        self._read(path, str(path[-1]), value, role)

    def read_named(self, path: Path, value: Any, role: str | None) -> None:
        """Read a member of a block that holds definitions; whoever wrote it also named it."""
        if not IDENTIFIER.fullmatch(str(path[-1])):
            self.values.add_leaf(path, str(path[-1]), LeafPlace.KEY, role)
        self.read(path, value, role)

    def _read(self, path: Path, name: str, value: Any, role: str | None) -> None:
        self.values.check_depth(path)
        if isinstance(value, str):
            if name not in _WORDS:
                self.values.add_text(path, value, LeafPlace.DEFINITION, role)
            elif not members.is_machine_word(value):
                self.values.add_leaf(path, value, LeafPlace.FIELD, role)
        elif isinstance(value, list):
            for index, child in enumerate(value):
                self._read((*path, index), name, child, role)
        elif isinstance(value, dict):
            for key, child in value.items():
                if not IDENTIFIER.fullmatch(key):
                    self.values.add_leaf((*path, key), key, LeafPlace.KEY, role)
                if key in _DATA and name not in _NAMED:
                    self.values.walk((*path, key), child, LeafPlace.DEFINITION, role)
                else:
                    self._read((*path, key), "" if name in _NAMED else key, child, role)
