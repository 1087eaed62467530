"""The form of a policy, made from its model: a field for every member, with its meaning and its default."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel

from app.core.contracts.policy import Policy
from app.core.contracts.policy_members import PolicyMember, members
from app.core.errors import InvalidArgumentsError, ServiceError
from app.core.strictjson import loads
from app.services.access.policy_documents import policy_of

_LONGEST_LINE: Final = 60
Widget = Literal["choice", "number", "line", "json"]


class FieldChoice(NamedTuple):
    """A value that may be chosen: as JSON, and in words."""

    value: str
    words: str


@dataclass(frozen=True, slots=True)
class PolicyField:
    """A field of the form; ``value`` and ``default`` as the form has them; ``parts`` are the members of its entries."""

    pointer: str
    name: str
    meaning: str
    takes: str
    widget: Widget
    value: str
    default: str
    choices: Sequence[FieldChoice]
    parts: Sequence[PolicyMember]

    @property
    def is_default(self) -> bool:
        """Return whether the field has the value that holds without a policy."""
        return _same(self.value, self.default)

    @property
    def rows(self) -> int:
        """Return how many lines the field takes."""
        return min(16, self.value.count("\n") + 1)


@dataclass(frozen=True, slots=True)
class PolicySection:
    """A member that holds others, with a field for each; the first one has the members that stand alone."""

    name: str
    title: str
    meaning: str
    fields: Sequence[PolicyField]

    @property
    def changed(self) -> int:
        """Return how many fields differ from their defaults."""
        return sum(not field.is_default for field in self.fields)


def sections(document: Mapping[str, Any], typed: Mapping[str, str] | None = None) -> list[PolicySection]:
    """Return the form for a policy as JSON; ``typed`` are fields as somebody has typed them, by pointer."""
    defaults, listed = Policy().model_dump(mode="json"), list(members())
    form = _Form(document, defaults, typed or {}, listed)
    alone = [name for name in Policy.model_fields if _model_of(Policy, name) is None]
    general = PolicySection(
        "", "General", "Members that stand alone.", [form.field(Policy, name, "") for name in alone]
    )
    return [general, *(form.section(name) for name in Policy.model_fields if name not in alone)]


def read_form(form: Mapping[str, str], document: Mapping[str, Any]) -> Policy:
    """Return the policy that a form describes, with the members of ``document`` where it has no field.

    Raises InvalidArgumentsError with a pointer to the field that cannot be read.
    """
    result = {name: dict(value) if isinstance(value, dict) else value for name, value in document.items()}
    for pointer, holder, name, annotation in _places():
        if pointer in form:
            target = result if not holder else result[holder]
            target[name] = _read(pointer, form[pointer], annotation)
    return policy_of(result)


def typed_fields(form: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a policy that a form has, as they were typed."""
    return {name: value.replace("\r\n", "\n") for name, value in form.items() if name.startswith("/")}


@dataclass(frozen=True, slots=True)
class _Form:
    document: Mapping[str, Any]
    defaults: Mapping[str, Any]
    typed: Mapping[str, str]
    listed: Sequence[PolicyMember]

    def section(self, holder: str) -> PolicySection:
        model = _model_of(Policy, holder)
        names = model.model_fields if model is not None else ()
        fields = [self.field(model or Policy, name, holder) for name in names]
        meaning = next(entry.meaning for entry in self.listed if entry.path == holder)
        return PolicySection(holder, _words(holder), meaning, fields)

    def field(self, model: type[BaseModel], name: str, holder: str) -> PolicyField:
        path = f"{holder}.{name}" if holder else name
        entry = next(entry for entry in self.listed if entry.path == path)
        annotation, pointer = model.model_fields[name].annotation, "/" + path.replace(".", "/")
        widget, choices = _widget(annotation)
        values, usual = ((tree[holder] if holder else tree) for tree in (self.document, self.defaults))
        inside = [part for part in self.listed if part.path.startswith((f"{path}[]", f"{path}."))]
        return PolicyField(
            pointer=pointer,
            name=name,
            meaning=entry.meaning,
            takes=entry.takes.replace("`", ""),
            widget=widget,
            value=self.typed.get(pointer, _spelled(values[name], widget)),
            default=_spelled(usual[name], widget),
            choices=choices,
            parts=[part._replace(path=part.path.removeprefix(path).lstrip("[].*")) for part in inside],
        )


def _places() -> Iterator[tuple[str, str, str, Any]]:
    """Yield pointer, holder, name and type of every field."""
    for name, field in Policy.model_fields.items():
        model = _model_of(Policy, name)
        if model is None:
            yield f"/{name}", "", name, field.annotation
            continue
        for inner, inner_field in model.model_fields.items():
            yield f"/{name}/{inner}", name, inner, inner_field.annotation


def _model_of(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    annotation = model.model_fields[name].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _widget(annotation: Any) -> tuple[Widget, list[FieldChoice]]:
    """Return what kind of field a type takes, and the values to choose from."""
    if get_origin(annotation) is Annotated:
        return _widget(get_args(annotation)[0])
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    plain = [part for part in parts if part is not NoneType]
    if len(plain) != 1:
        return "json", []
    choices = _choices(plain[0])
    if choices:
        unset = [FieldChoice("null", "not set")] if NoneType in parts else []
        return "choice", [*unset, *choices]
    base = get_args(plain[0])[0] if get_origin(plain[0]) is Annotated else plain[0]
    if base in (int, float):
        return "number", []
    return ("line" if base is str else "json"), []


def _choices(annotation: Any) -> list[FieldChoice]:
    if annotation is bool:
        return [FieldChoice("true", "yes"), FieldChoice("false", "no")]
    values = get_args(annotation) if get_origin(annotation) is Literal else ()
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        values = tuple(annotation)
    return [FieldChoice(json.dumps(value), str(value)) for value in values]


def _spelled(value: Any, widget: Widget) -> str:
    if widget in {"number", "line"}:
        return "" if value is None else str(value)
    spelled = json.dumps(value, ensure_ascii=False)
    return spelled if len(spelled) <= _LONGEST_LINE else json.dumps(value, ensure_ascii=False, indent=2)


def _read(pointer: str, text: str, annotation: Any) -> Any:
    widget, choices = _widget(annotation)
    text = text.strip()
    if not text and NoneType in get_args(annotation):
        return None
    if widget == "line":
        return text
    if widget == "choice" and text not in {choice.value for choice in choices}:
        raise _unreadable(pointer, "the form has a choice that there is not")
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except ServiceError as error:
        raise _unreadable(pointer, f"it is not JSON. {error.message}") from None


def _same(text: str, other: str) -> bool:
    try:
        return json.dumps(json.loads(text), sort_keys=True) == json.dumps(json.loads(other), sort_keys=True)
    except ValueError:
        return text == other


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _unreadable(pointer: str, reason: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(f"The policy is wrong at {pointer}: {reason}", details={"pointer": pointer})
