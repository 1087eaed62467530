"""People and groups as SCIM 2.0 says them (RFC 7643, RFC 7644), reduced to what is kept of them here.

Of a person: ``userName``, ``externalId``, ``displayName`` and whether they are ``active``. Of a group: ``displayName``,
``externalId`` and the ids of its ``members``. Everything else that a provider sends is taken and dropped.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from app.core.errors import InvalidRequestError

Kind = Literal["User", "Group"]

CORE: Final = "urn:ietf:params:scim:schemas:core:2.0:"
MESSAGES: Final = "urn:ietf:params:scim:api:messages:2.0:"
MOST_MEMBERS: Final = 10_000
MOST_OPERATIONS: Final = 1_000
_LONGEST: Final = 512
_FILTER: Final = re.compile(r'\s*([A-Za-z0-9:._-]+)\s+eq\s+("(?:[^"\\]|\\.)*")\s*', re.IGNORECASE)
_MEMBER: Final = re.compile(
    rf'(?:{re.escape(CORE)}Group:)?members\[\s*value\s+eq\s+("(?:[^"\\]|\\.)*")\s*\]', re.IGNORECASE
)
_SCHEMAS: Final = tuple(f"{CORE}{kind}:".lower() for kind in ("User", "Group"))
_KEPT: Final = {
    "User": frozenset({"username", "displayname", "externalid", "active"}),
    "Group": frozenset({"displayname", "externalid", "members"}),
}
"""Attributes that count here, in small letters."""
_FIRST_WORD: Final = re.compile(r"[^a-z]*([a-z]*)")
_TRUTHS: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A person or a group; ``name`` is a person's ``userName`` or a group's ``displayName``."""

    kind: Kind
    id: str
    name: str = field(repr=False)
    external: str | None = field(default=None, repr=False)
    shown: str | None = field(default=None, repr=False)
    active: bool = True
    members: tuple[str, ...] = ()

    @classmethod
    def read(cls, kind: Kind, entry_id: str, body: Any) -> "DirectoryEntry":
        """Return what a whole resource says; raises InvalidRequestError for one without a name."""
        if not isinstance(body, dict):
            raise fault("The body is no resource.", "invalidSyntax")
        entry = cls(kind, entry_id, "")
        for attribute, value in body.items():
            entry = entry.with_value(attribute, value)
        if not entry.name:
            raise fault(f"A {kind} needs {'userName' if kind == 'User' else 'displayName'}.", "invalidValue")
        return entry

    def patched(self, body: Any) -> "DirectoryEntry":
        """Return the entry after the operations of a PATCH (RFC 7644, 3.5.2); what is not kept changes nothing."""
        operations = _member(body, "operations")
        if not isinstance(operations, list) or not 1 <= len(operations) <= MOST_OPERATIONS:
            raise fault(f"A PATCH has 1 to {MOST_OPERATIONS} Operations.", "invalidSyntax")
        entry = self
        for operation in operations:
            entry = entry._operated(operation)
        return entry

    def with_value(self, attribute: str, value: Any) -> "DirectoryEntry":
        """Return the entry with another value of an attribute; None takes it away."""
        name = _bare(attribute)
        own = "username" if self.kind == "User" else "displayname"
        if name == own:
            if value is None:
                raise fault("The name of an entry cannot be removed.", "mutability")
            return replace(self, name=_text(value, attribute))
        if name == "externalid":
            return replace(self, external=None if value is None else _text(value, attribute))
        if name == "displayname":
            return replace(self, shown=None if value is None else _text(value, attribute))
        if name == "active" and self.kind == "User":
            # Who is no longer said to be active is not.
            return replace(self, active=False if value is None else _truth(value))
        if name == "members" and self.kind == "Group":
            return self._with_members(() if value is None else _ids(value))
        return self

    def stored(self) -> bytes:
        """Return what is sealed of it."""
        values = {"name": self.name, "external": self.external, "shown": self.shown, "members": self.members}
        return json.dumps(values).encode()

    @classmethod
    def opened(cls, kind: Kind, entry_id: str, *, active: bool, content: bytes) -> "DirectoryEntry":
        """Return an entry from what was sealed of it."""
        values = json.loads(content)
        values["members"] = tuple(values["members"])
        return cls(kind, entry_id, active=active, **values)

    def rendered(self, base: str, *, members: bool = True) -> dict[str, Any]:
        """Return the resource; ``base`` is the address of the SCIM service."""
        shown: dict[str, Any] = {"displayName" if self.kind == "Group" else "userName": self.name}
        if self.kind == "User":
            shown |= {"active": self.active, **({"displayName": self.shown} if self.shown else {})}
        elif members:
            shown["members"] = [{"value": each} for each in self.members]
        return {
            "schemas": [CORE + self.kind],
            "id": self.id,
            **({"externalId": self.external} if self.external is not None else {}),
            **shown,
            "meta": {"resourceType": self.kind, "location": f"{base}/{self.kind}s/{self.id}"},
        }

    def _operated(self, operation: Any) -> "DirectoryEntry":
        kind, path, value = (_member(operation, name) for name in ("op", "path", "value"))
        action = kind.lower() if isinstance(kind, str) else None
        if action not in {"add", "replace", "remove"} or not (path is None or isinstance(path, str)):
            raise fault("An operation is add, replace or remove.", "invalidSyntax")
        if path is None:
            if action == "remove":
                raise fault("What is removed needs a path.", "noTarget")
            if not isinstance(value, dict):
                raise fault("An operation without a path has an object as its value.", "invalidValue")
            entry = self
            for attribute, each in value.items():
                entry = entry._operated({"op": action, "path": attribute, "value": each})
            return entry
        single = _MEMBER.fullmatch(path)
        if single is not None and action == "remove" and self.kind == "Group":
            return self._without(frozenset({_quoted(single[1], "invalidPath")}))
        self._check_path(path, value)
        if _bare(path) == "members" and self.kind == "Group":
            if action == "add":
                return self._with_members((*self.members, *_ids(value)))
            if action == "remove" and value is not None:
                return self._without(frozenset(_ids(value)))
        return self.with_value(path, None if action == "remove" else value)

    def _check_path(self, path: str, value: Any) -> None:
        """Refuse to change parts of what is kept in ways that are not known here: nobody is to stay in unseen."""
        kept, name = _KEPT[self.kind], _bare(path)
        first = _FIRST_WORD.match(name)
        is_part = first is not None and first[1] in kept and name not in kept
        is_schema = name == (CORE + self.kind).lower() and isinstance(value, Mapping)
        if is_part or (is_schema and not kept.isdisjoint(map(_bare, value))):
            raise fault(
                "This path is not supported: give an attribute's name alone"
                + (', or members[value eq "…"] to remove one.' if self.kind == "Group" else "."),
                "invalidPath",
            )

    def _without(self, gone: frozenset[str]) -> "DirectoryEntry":
        return replace(self, members=tuple(each for each in self.members if each not in gone))

    def _with_members(self, members: Iterable[str]) -> "DirectoryEntry":
        unique = tuple(dict.fromkeys(members))
        if len(unique) > MOST_MEMBERS:
            raise fault(f"A group has at most {MOST_MEMBERS} members here.", "tooMany")
        return replace(self, members=unique)


def filtered(text: str) -> tuple[str, str]:
    """Return attribute (in lower case) and value of a filter, which compares one with ``eq``."""
    match = _FILTER.fullmatch(text) if len(text) <= 2 * _LONGEST else None
    if match is None or _bare(match[1]) not in {"username", "externalid", "id", "displayname"}:
        raise fault(
            'Filters are: userName eq "…", displayName eq "…", externalId eq "…", id eq "…".', "invalidFilter"
        )
    return _bare(match[1]), _quoted(match[2], "invalidFilter")


def fault(message: str, scim_type: str) -> InvalidRequestError:
    """Return an error that SCIM knows under a type (RFC 7644, table 9)."""
    return InvalidRequestError(message, details={"scimType": scim_type})


def _quoted(text: str, scim_type: str) -> str:
    """Return the text that a filter quotes; no id and no name has a character that cannot be printed."""
    try:
        value: str = json.loads(text)
    except ValueError:
        value = "\0"
    if not value.isprintable():
        raise fault("The value of the filter is no JSON string of printable characters.", scim_type)
    return value


def _bare(attribute: str) -> str:
    """Return an attribute's name without the core schema; names count in any case, those of extensions as they are."""
    name = attribute.lower()
    return next((name.removeprefix(each) for each in _SCHEMAS if name.startswith(each)), name)


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping):
        raise fault("The body is no PATCH.", "invalidSyntax")
    return next((each for key, each in value.items() if isinstance(key, str) and key.lower() == name), None)


def _text(value: Any, attribute: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST or not value.isprintable():
        raise fault(f"{_bare(attribute)} is a text of 1 to {_LONGEST} printable characters.", "invalidValue")
    return value


def _truth(value: Any) -> bool:
    # Microsoft Entra ID sends "True" and "False".
    truth = _TRUTHS.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(truth, bool):
        raise fault("active is true or false.", "invalidValue")
    return truth


def _ids(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    ids = [_member(each, "value") if isinstance(each, Mapping) else None for each in listed]
    if len(ids) > MOST_MEMBERS or not all(
        isinstance(each, str) and 1 <= len(each) <= _LONGEST for each in ids
    ):
        raise fault(
            f"members are at most {MOST_MEMBERS} objects, each with an id as its value.", "invalidValue"
        )
    return [str(each) for each in ids]
