"""The canonical form of an event, JSON with sorted names, made from the event or from what a database stores.

Both are here so that they cannot differ. Texts that many events share, such as an action, are quoted once: an event is
written for each call, and whoever verifies the record makes this form of every event that it has.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from json.encoder import encode_basestring_ascii
from operator import attrgetter, itemgetter
from typing import Any, Final

from app.core.audit import AuditEvent, EventCode, WriterNumber
from app.core.transparency.hashing import leaf_hash
from app.engines.cipher import RecordKeys

_NULL: Final = "null"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = 1_000_000
_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of two members of one name, SQLite reads the first and everything else the last."""
    made = dict(members)
    if len(made) < len(members):
        raise ValueError("A name stands twice in a document.")
    return made


_DECODE: Final = json.JSONDecoder(object_pairs_hook=_unique).decode

Encode = Callable[[Any], str]
"""Returns a member's value as JSON; one of another type raises TypeError, ValueError or AttributeError."""


def _text(value: str | None) -> str:
    return _NULL if value is None else encode_basestring_ascii(value)


_word: Final = lru_cache(4096)(_text)
"""Texts that come again and again."""


def _number(value: int | None) -> str:
    return _NULL if value is None else int.__repr__(value)


def _digest(value: bytes | None) -> str:
    return _NULL if value is None else f'"{hashlib.sha256(value).hexdigest()}"'


def _moment(value: datetime) -> str:
    return str(round((value - _EPOCH).total_seconds() * _US))


def _stored_moment(value: datetime | str) -> str:
    """Return the microseconds of a moment as either engine stores it: SQLite as text in UTC, which it compares as text.

    Raises ValueError for another text than is stored of a moment.
    """
    if not isinstance(value, str):
        return _moment(value)
    moment = datetime.fromisoformat(value)
    if moment.isoformat(" ", "microseconds") != value:
        raise ValueError("The moment is not in the form of the record.")
    return _moment(moment.replace(tzinfo=UTC))


def _id(value: Any) -> str:
    return f'"{value.hex}"'


def _stored_id(value: Any) -> str:
    return encode_basestring_ascii(value if isinstance(value, str) else value.hex)


@lru_cache(256)
def _names(values: Sequence[str]) -> str:
    return _JSON(sorted(values))


@lru_cache(256)
def _stored_names(document: str) -> str:
    names = json.loads(document)
    if not isinstance(names, list):
        raise TypeError("The names are no list.")
    return _JSON(sorted(names))


def _mapping(values: Mapping[str, object]) -> str:
    """Return a flat mapping, as nearly all are; the encoder takes five times as long to be set up for it."""
    if not values:
        return "{}"
    return f"{{{','.join([f'{_word(name)}:{_value(values[name])}' for name in sorted(values)])}}}"


def _value(value: object) -> str:
    if type(value) is str:
        return encode_basestring_ascii(value)
    if type(value) is bool:
        return "true" if value else "false"
    return int.__repr__(value) if type(value) is int else _JSON(value)


@lru_cache(1024)
def _stored_mapping(document: str) -> str:
    return _mapping(_DECODE(document))


def _versions(values: Mapping[str, object] | None) -> str:
    return _NULL if values is None else _mapping(values)


def _stored_versions(document: str | None) -> str:
    return _NULL if document is None else _stored_mapping(document)


_WORD: Final = (_word, _word)
_TEXT: Final = (_text, _text)
_NUMBER: Final = (_number, _number)
_MAPPING: Final = (_mapping, _stored_mapping)
_MEMBERS: Final[Mapping[str, tuple[Encode, Encode]]] = {
    "tenant": _WORD,
    "id": (_id, _stored_id),
    "at": (_moment, _stored_moment),
    "actor": _WORD,
    "roles": (_names, _stored_names),
    "action": _WORD,
    "outcome": _WORD,
    "middleware": _WORD,
    "policy_version": _NUMBER,
    "error_code": _WORD,
    "scope_ref": _WORD,
    "in_hmac": _TEXT,
    "out_hmac": _TEXT,
    "blocks": _NUMBER,
    "bytes_in": _NUMBER,
    "bytes_out": _NUMBER,
    "counts": _MAPPING,
    "duration_us": _NUMBER,
    "request_id": _TEXT,
    "traceparent": _TEXT,
    "details": _MAPPING,
    "sealed": (_digest, _digest),
}
"""How each member is written: that of an event, and that of a stored row, whose JSON is text."""
_WRITER: Final[Mapping[str, tuple[Encode, Encode]]] = {"writer": _WORD, "writer_seq": _NUMBER}


_COMMON: Final = frozenset(
    {
        *("action", "actor", "address_class", "decision", "error_code", "key_name", "middleware", "outcome"),
        *("policy_version", "roles", "tenant"),
    }
)
"""Members of which a process meets few values together, so that they are written once for many events."""
_REMEMBERED_TEMPLATES: Final = 1024


IDENTITY: Final[Mapping[str, tuple[Encode, Encode]]] = {
    "on_behalf_of": _TEXT,
    "key_name": _WORD,
    "address_class": _WORD,
    "decision": _WORD,
    "versions": (_versions, _stored_versions),
}
"""The members that no event had before the newest version."""


def _template(version: int, names: Sequence[str], written: Mapping[str, str]) -> str:
    """Return a format of the members ``names``, in which those of ``written`` are filled in."""
    texts = dict.fromkeys(names, "%s") | {name: text.replace("%", "%%") for name, text in written.items()}
    texts["v"] = str(version)
    members = [f'"{name}":{texts[name]}' for name in sorted(texts)]
    return f"{{{','.join(members)}}}"


class CanonicalForm:
    """One version of the form; ``columns`` are the names that a stored row has, in its order."""

    def __init__(self, version: int, *, numbered: bool, identified: bool = False) -> None:
        members = {**_MEMBERS, **(IDENTITY if identified else {}), **(_WRITER if numbered else {})}
        names = sorted(members)
        self._written = partial(_template, version, names)
        self._template = self._written({})
        common = [name for name in names if name in _COMMON]
        own = [name for name in names if name not in _COMMON]
        self._common_values = attrgetter(*common)
        self._common = [(name, members[name][0]) for name in common]
        self._own_values = attrgetter(*(name for name in own if name not in _WRITER))
        self._own_encoders = [members[name][0] for name in own]
        self._template_with = lru_cache(_REMEMBERED_TEMPLATES, typed=True)(self._with_common)
        self._stored_encoders = [members[name][1] for name in names]
        self.names: Final = tuple(names)

    def of_event(self, event: AuditEvent, *number: object) -> bytes:
        """Return an event's form; ``number`` are its writer and its number, where it has them."""
        values = (*self._own_values(event), *number)
        encoded = [encode(value) for encode, value in zip(self._own_encoders, values, strict=True)]
        return (self._template_with(*self._common_values(event)) % tuple(encoded)).encode()

    def _with_common(self, *values: Any) -> str:
        """Return the template in which the members are written that many events have in common."""
        written = zip(self._common, values, strict=True)
        return self._written({name: encode(value) for (name, encode), value in written})

    def of_stored(self, columns: Sequence[str]) -> Callable[[Sequence[Any]], bytes]:
        """Return what makes the form of a stored row whose columns are named so.

        It raises TypeError, ValueError or AttributeError for a row that no event was stored as.
        """
        pick = itemgetter(*(columns.index(name) for name in self.names))
        encoders, template = self._stored_encoders, self._template

        def form(row: Sequence[Any]) -> bytes:
            encoded = [encode(value) for encode, value in zip(encoders, pick(row), strict=True)]
            return (template % tuple(encoded)).encode()

        return form


UNNUMBERED: Final = 1
NUMBERED: Final = 2
IDENTIFIED: Final = 3
"""Versions of the canonical form; each is the first byte of its leaves."""
FORMS: Final = {
    (UNNUMBERED, False): CanonicalForm(UNNUMBERED, numbered=False),
    (NUMBERED, True): CanonicalForm(NUMBERED, numbered=True),
    (IDENTIFIED, True): CanonicalForm(IDENTIFIED, numbered=True, identified=True),
    # No release made such events: what somebody adds to one without a number changes its leaf, too.
    (IDENTIFIED, False): CanonicalForm(IDENTIFIED, numbered=False, identified=True),
}
"""The forms by their version, and by whether the event has a number."""
LATER: Final = tuple(name for name in IDENTITY if name != "versions")
"""The members of the newest form but the one that every event of its releases has."""


def payload(event: AuditEvent, number: WriterNumber | None = None) -> bytes:
    """Return the canonical bytes of ``event``, over which its leaf in the log is computed.

    JSON, names sorted, times in microseconds since 1970, sealed content by its SHA-256. ``number`` is None for an event
    from before events were numbered; one with none of the newest members is from before they existed.
    """
    form = FORMS[_version(event, number), number is not None]
    return form.of_event(event, *(number or ()))


def event_leaf(event: AuditEvent, number: WriterNumber | None) -> bytes:
    """Return the bytes of an event as an entry of its tenant's log: a version byte and the event's payload."""
    return bytes([_version(event, number)]) + payload(event, number)


def event_code(keys: RecordKeys, event: AuditEvent, number: WriterNumber) -> EventCode:
    """Return the hash of a numbered event's leaf, and its authentication code."""
    leaf = leaf_hash(event_leaf(event, number))
    return EventCode(leaf, keys.mac(event.tenant, leaf))


def _version(event: AuditEvent, number: WriterNumber | None) -> int:
    """Return the version of an event's form: which members its release had, by what is stored of it."""
    if event.versions is not None or any(getattr(event, name) is not None for name in LATER):
        return IDENTIFIED
    return UNNUMBERED if number is None else NUMBERED
