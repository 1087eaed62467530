"""What the settings of MCP servers and of model providers share: secrets sealed, shown by name and submitted again."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from app.core.errors import InternalError, InvalidArgumentsError
from app.core.strictjson import dumps, loads
from app.engines.cipher import RecordKeys, SealBrokenError
from app.store.named_records import NamedRecord


def seal_secrets(
    keys: RecordKeys, tenant: str, kind: str, name: str, secrets: Mapping[str, Any]
) -> bytes | None:
    """Return the secrets as ciphertext, valid for this tenant, kind and name only; None if there are none."""
    if not any(secrets.values()):
        return None
    return keys.seal(tenant, _purpose(kind, name), dumps(secrets))


def open_secrets(keys: RecordKeys, kind: str, stored: NamedRecord) -> Mapping[str, Any]:
    """Return the secrets of a record by member; raise InternalError if they are lost."""
    if stored.secrets is None:
        return {}
    try:
        secrets: Mapping[str, Any] = loads(
            keys.open(stored.tenant, _purpose(kind, stored.name), stored.secrets)
        )
    except SealBrokenError:
        raise InternalError(
            f"The secrets of the {kind} cannot be decrypted; supply its settings again.",
            details={kind: stored.name},
        ) from None
    return secrets


def complete_secrets(
    submitted: Any, stored: Mapping[str, str], member: str, pointer: str
) -> tuple[Any, bool]:
    """Return the secrets of a member with every value, and whether one of them was taken from ``stored``.

    An absent or null member stands for all that is stored, a null in it for what is stored under that name; raises
    InvalidArgumentsError, with ``pointer``, where nothing is. What is no object is returned as it is: validation
    reports it.
    """
    if submitted is None:
        return dict(stored), bool(stored)
    if not isinstance(submitted, Mapping):
        return submitted, False
    complete = {name: stored.get(name) if value is None else value for name, value in submitted.items()}
    if None in complete.values():
        raise InvalidArgumentsError(
            f"A value in {member} is null, but nothing is stored under that name: supply the value.",
            details={"pointer": pointer},
        )
    return complete, None in submitted.values()


def settings_fault(
    error: ValidationError, subject: str, secret_members: Collection[str], above: str = ""
) -> InvalidArgumentsError:
    """Return the error with its place below the pointer ``above``, without the value, which may be a secret."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path, reason = list(fault["loc"]), str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
    if path and path[0] in secret_members:
        path = path[:1]
    if fault["type"] == "extra_forbidden":
        # The last step is the unknown name itself: the caller's text, not ours.
        path, reason = path[:-1], "it has an unknown member"
    pointer = above + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    place = f" at {pointer}" if pointer else ""
    return InvalidArgumentsError(
        f"{subject} wrong{place}: {reason[:1].lower()}{reason[1:]}.", details={"pointer": pointer}
    )


def _purpose(kind: str, name: str) -> bytes:
    return f"{kind}:{name}".encode()
