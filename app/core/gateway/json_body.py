"""Change values of a JSON text in place, so that every byte around them stays as it came."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined] # the decoder's own, which also returns the end
from typing import Any, Final

from app.core import strictjson
from app.core.gateway.channels import Path

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder(strict=False)
_SCANNER: Final = _DECODER.scan_once  # type: ignore[attr-defined] # C, returns the end
FRONT: Final = -1
"""The step of a path that stands for the place before a list's first element."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class RawJson:
    """A value as the JSON text that stands for it."""

    text: str


class JsonBody:
    """A JSON text and its value, which is read when it is asked for; immutable."""

    def __init__(self, text: str, value: Any = None) -> None:
        self.text = text
        self._value = value

    @classmethod
    def parse(cls, body: bytes, *, max_depth: int = 64) -> "JsonBody":
        """Parse a body strictly; raise InvalidRequestError or TooLargeError."""
        value = strictjson.loads(body, max_depth=max_depth)
        return cls(body.decode(), value)

    @classmethod
    def parsed(cls, body: bytes, value: Any, *, max_depth: int = 64) -> "JsonBody":
        """Return a body that was parsed strictly before, into ``value``; raise TooLargeError."""
        strictjson.check_depth(body, max_depth)
        return cls(body.decode(), value)

    @classmethod
    def lenient(cls, text: str) -> "JsonBody | None":
        """Parse what a provider sent, or return None; of members of one name, the last one counts."""
        try:
            if text.startswith("{"):
                value, end = _SCANNER(text, 0)
                if end == len(text):
                    return cls(text, value)
            return cls(text, _DECODER.decode(text))
        except StopIteration:
            return None
        except (ValueError, RecursionError):
            return None

    @property
    def value(self) -> Any:
        """Return the value; nobody may change it."""
        if self._value is None:
            self._value = _DECODER.decode(self.text)
        return self._value

    def raw(self, path: Path) -> str:
        """Return the JSON text of the value at ``path``; raise KeyError without one."""
        return self.raws([path])[path]

    def raws(self, paths: Iterable[Path]) -> dict[Path, str]:
        """Return the JSON texts of the values at ``paths``, of which none may lead through another."""
        places = _Finder(self.text, paths).places
        if any(place.start == place.end for place in places):
            raise KeyError("there is no such member")
        return {place.path: self.text[place.start : place.end] for place in places}

    def replaced(
        self, values: Mapping[Path, Any], fronts: Mapping[Path, Sequence[Any]] | None = None
    ) -> "JsonBody":
        """Return the body with the values at the paths of ``values`` replaced, and ``fronts`` put in front of lists.

        A member that its object lacks is added at the end of it.
        """
        if not values and not fronts:
            return self
        changes: dict[Path, Any] = {
            (*path, FRONT): RawJson(",".join(map(json_text, elements)))
            for path, elements in (fronts or {}).items()
            if elements
        }
        changes.update(values)
        pieces, position = [], 0
        # Insertions at one place keep the order in which they were asked for: sorting is stable.
        for place in sorted(_Finder(self.text, changes).places, key=lambda place: (place.start, place.end)):
            pieces += [self.text[position : place.start], place.before]
            pieces += [json_text(changes[place.path]), place.after]
            position = place.end
        return JsonBody("".join([*pieces, self.text[position:]]))


def json_text(value: Any) -> str:
    """Return the JSON text of ``value``; what UTF-8 cannot encode is escaped."""
    if isinstance(value, RawJson):
        return value.text
    text = _ENCODER.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the value at a path stands, or where it is to be inserted, and what then goes around it."""

    path: Path
    start: int
    end: int
    before: str = ""
    after: str = ""


class _Finder:
    """Find values by their paths; only containers on a path are walked in Python."""

    def __init__(self, text: str, paths: Iterable[Path]) -> None:
        self.text = text
        self.places: list[_Place] = []
        tree: dict[Any, Any] = {}
        for path in paths:
            node = tree
            for step in path:
                node = node.setdefault(step, {})
            node[_END] = path
        self._value(self._after_blanks(0), tree)

    def _after_blanks(self, place: int) -> int:
        match = _BLANKS.match(self.text, place)
        return match.end() if match is not None else place

    def _value(self, place: int, node: Mapping[Any, Any] | None) -> int:
        """Walk the value at ``place`` and return its end."""
        if node is None or _END in node:
            end: int = _SCANNER(self.text, place)[1]
            if node is not None:
                self.places.append(_Place(node[_END], place, end))
            return end
        if self.text[place] == "{":
            return self._object(place, node)
        if self.text[place] == "[":
            return self._list(place, node)
        raise KeyError("the path leads through a value that holds none")

    def _object(self, place: int, node: Mapping[Any, Any]) -> int:
        last = place + 1
        place = self._after_blanks(last)
        absent, separator = dict(node), ""
        while self.text[place] != "}":
            name, place = scanstring(self.text, place + 1, False)
            place = self._after_blanks(self._after_blanks(place) + 1)
            absent.pop(name, None)
            last, separator = self._value(place, node.get(name)), ","
            place = self._after_comma(last)
        for name, child in absent.items():
            if _END not in child:
                raise KeyError("the path leads through a member that is absent")
            self.places.append(_Place(child[_END], last, last, f"{separator}{json_text(name)}:"))
            separator = ","
        return place + 1

    def _list(self, place: int, node: Mapping[Any, Any]) -> int:
        first = place + 1
        place = self._after_blanks(first)
        if FRONT in node:
            after = "" if self.text[place] == "]" else ","
            self.places.append(_Place(node[FRONT][_END], first, first, after=after))
        number = 0
        while self.text[place] != "]":
            place = self._after_comma(self._value(place, node.get(number)))
            number += 1
        if any(isinstance(step, int) and step >= number for step in node):
            raise KeyError("the path leads behind the end of a list")
        return place + 1

    def _after_comma(self, place: int) -> int:
        """Return where the next element begins, or the bracket that ends its container."""
        place = self._after_blanks(place)
        return self._after_blanks(place + 1) if self.text[place] == "," else place


class _End:
    """The key under which a tree of paths holds the path that ends there."""


_END: Final = _End()
