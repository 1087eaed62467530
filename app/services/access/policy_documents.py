"""Policies as JSON: validate a document, merge a patch into one (RFC 7396), and compare two."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from app.core.contracts.policy import Policy
from app.core.errors import InvalidArgumentsError


class PolicyDifference(NamedTuple):
    """A member that differs: a JSON pointer to it, and its JSON values; one that is absent is None."""

    pointer: str
    before: Any
    after: Any


def differences(before: Policy, after: Policy) -> list[PolicyDifference]:
    """Return the members that differ, two levels deep, which is where people think of them."""
    old, new = _flat(before), _flat(after)
    return [
        PolicyDifference(pointer, old.get(pointer), new.get(pointer))
        for pointer in {**old, **new}
        if not _same(old.get(pointer), new.get(pointer))
    ]


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


def _flat(policy: Policy) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in policy.model_dump(mode="json").items():
        if isinstance(value, dict):
            flat |= {f"/{name}/{escaped(part)}": inner for part, inner in value.items()}
        else:
            flat[f"/{name}"] = value
    return flat


def _same(value: Any, other: Any) -> bool:
    """Compare JSON values; in Python, true would equal 1."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
