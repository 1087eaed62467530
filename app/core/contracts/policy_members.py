"""Every member of a policy in words, taken from the model: for the page that lists them and for the command line."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.core.contracts.policy import Policy


class PolicyMember(NamedTuple):
    """One member: its path, what it takes, its default (``...``: required), its meaning.

    In a path, ``[]`` is any entry of a list and ``*`` any name.
    """

    path: str
    takes: str
    default: Any
    meaning: str


_PLAIN: Final[Mapping[Any, str]] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Any: "any JSON value",
}


def members(model: type[BaseModel] = Policy, at: str = "") -> Iterator[PolicyMember]:
    """Yield the members of ``model`` and of the models inside it, in their order."""
    for name, field in model.model_fields.items():
        path = f"{at}.{name}" if at else name
        inner, suffix = _model_in(field.annotation)
        meaning = (
            field.description or (inner.__doc__ or "").strip().partition("\n")[0]
            if inner
            else field.description
        )
        yield PolicyMember(path, _words(field.annotation) + _bounds(field), _default(field), meaning or "")
        if inner is not None:
            yield from members(inner, path + suffix)


def _model_in(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return the model that a type holds, and how its members are reached."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (list, Sequence):
        model, suffix = _model_in(arguments[0])
        return model, f"[]{suffix}"
    if origin in (dict, Mapping):
        model, suffix = _model_in(arguments[1])
        return model, f".*{suffix}"
    if origin in (Union, UnionType):
        models = [part for part in arguments if _model_in(part)[0] is not None]
        return _model_in(models[0]) if len(models) == 1 and type(None) in arguments else (None, "")
    return None, ""


def _words(annotation: Any) -> str:
    """Return in words what a member takes."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    choices = arguments if origin is Literal else ()
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        choices = tuple(annotation)
    if choices:
        return " or ".join(f"`{choice}`" for choice in choices)
    if origin is Annotated:
        return _words(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join("null" if part is type(None) else _words(part) for part in arguments)
    if origin in (list, Sequence):
        return f"list of {_words(arguments[0])}"
    many = origin in (dict, Mapping)
    return f"object: name to {_words(arguments[1])}" if many else _PLAIN.get(annotation, "object")


def _bounds(field: FieldInfo) -> str:
    limits = {
        name: getattr(rule, name)
        for rule in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(rule, name)
    }
    words = {"ge": "at least", "gt": "above", "le": "at most"}
    return "".join(f", {words[name]} {limits[name]:g}" for name in words if name in limits)


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return ...
    value = field.get_default(call_default_factory=True)
    if isinstance(value, list):
        return [_document(part) for part in value]
    return _document(value)


def _document(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
