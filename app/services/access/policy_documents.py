"""Policies as JSON: validate a document, and merge a patch into one (RFC 7396)."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from app.core.contracts.policy import Policy
from app.core.errors import InvalidArgumentsError


def policy_of(document: Any) -> Policy:
    """Return the policy that ``document`` describes, or raise InvalidArgumentsError without repeating a value."""
    try:
        return Policy.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path, message = list(fault["loc"]), str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
        if fault["type"] == "extra_forbidden":
            # The last step is the unknown name itself: the caller's text, not ours.
            path, message = path[:-1], "There is no such member"
        pointer = "".join(f"/{escaped(str(step))}" for step in path)
        raise InvalidArgumentsError(
            f"The policy is wrong at {pointer or 'its top'}: {message[:1].lower() + message[1:]}.",
            details={"pointer": pointer},
        ) from None


def merged(target: Any, patch: Any) -> Any:
    """Return ``target`` with a JSON merge patch: null removes a member, an object is merged, the rest replaces."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def escaped(name: str) -> str:
    """Return one step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")
