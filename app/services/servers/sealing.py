"""A server's entry as it is stored, as it is shown and as it is given: three forms that differ in its secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from app.core.catalog.primitives import Disclosure
from app.core.catalog.servers import SECRET_FIELDS, MCPServerSettings, ServerEntry
from app.core.errors import InternalError, InvalidArgumentsError
from app.core.strictjson import dumps, loads
from app.engines.cipher import RecordKeys, SealBrokenError
from app.store.servers import StoredServer

_AROUND: Final = ("tool_filter", "aliases", "disclosure")
_REACH: Final = ("type", "url", "command", "args", "cwd")


@dataclass(frozen=True, slots=True)
class SubmittedServer:
    """What an operator says of a server.

    ``settings`` has the shape of an entry of ``mcpServers``. A value of None in ``env`` or ``headers`` stands for what
    is stored under that name, an absent ``env`` or ``headers`` for all that is stored.
    """

    settings: Mapping[str, Any] = field(repr=False)
    tool_filter: list[str] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    disclosure: Disclosure = "flat"

    def entry(self, name: str, held: MCPServerSettings | None = None) -> ServerEntry:
        """Return the whole entry, with the secrets that are not repeated taken from ``held``."""
        complete, kept = _with_secrets(self.settings, held)
        try:
            settings = MCPServerSettings.model_validate(complete)
        except ValidationError as error:
            raise _fault(error, "/settings") from None
        if held is not None and kept and reached(settings) != reached(held):
            raise InvalidArgumentsError(
                "The server would be another one: give the values of env and headers again, so that nobody receives "
                "secrets that were not meant for it.",
                details={"pointer": "/settings"},
            )
        try:
            return ServerEntry(
                name=name,
                settings=settings,
                tool_filter=self.tool_filter,
                aliases=dict(self.aliases),
                disclosure=self.disclosure,
            )
        except ValidationError as error:
            raise _fault(error, "") from None


def reached(settings: MCPServerSettings) -> Mapping[str, Any]:
    """Return the part of the settings that decides which program answers."""
    return {name: getattr(settings, name) for name in _REACH}


def connection_of(settings: MCPServerSettings) -> tuple[Any, ...]:
    """Return the part of the settings after whose change a server must be approved again, secrets included."""
    return (reached(settings), *(getattr(settings, part) for part in sorted(SECRET_FIELDS)))


def changed_parts(before: ServerEntry, after: ServerEntry) -> str:
    """Return the names of what is different, with commas between; never a value."""
    settings = [
        name
        for name in MCPServerSettings.model_fields
        if getattr(before.settings, name) != getattr(after.settings, name)
    ]
    around = [name for name in _AROUND if getattr(before, name) != getattr(after, name)]
    return ",".join(sorted(settings + around))


def shown(settings: MCPServerSettings) -> dict[str, Any]:
    """Return settings as operators see them: of secrets the names, with null for each value."""
    found = settings.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(SECRET_FIELDS))
    for part in sorted(SECRET_FIELDS):
        found[part] = dict.fromkeys(getattr(settings, part))
    return found


def document_of(entry: ServerEntry) -> dict[str, Any]:
    """Return what the database stores in clear: everything but the name and the secrets."""
    return entry.model_dump(
        mode="json",
        by_alias=True,
        exclude={"name": True, "settings": dict.fromkeys(SECRET_FIELDS, True)},
    )


def sealed(keys: RecordKeys, tenant: str, entry: ServerEntry) -> bytes | None:
    """Return the secrets as ciphertext, good for this tenant and server only; None where there are none."""
    secrets = {part: getattr(entry.settings, part) for part in sorted(SECRET_FIELDS)}
    if not any(secrets.values()):
        return None
    return keys.seal(tenant, _purpose(entry.name), dumps(secrets))


def opened(keys: RecordKeys, stored: StoredServer) -> ServerEntry:
    """Return the whole entry of a stored server, secrets included."""
    secrets: dict[str, Any] = {}
    if stored.secrets is not None:
        try:
            secrets = loads(keys.open(stored.tenant, _purpose(stored.name), stored.secrets))
        except SealBrokenError:
            raise InternalError(
                "The secrets of the server cannot be opened; give its settings again.",
                details={"server": stored.name},
            ) from None
    document = dict(stored.document)
    return ServerEntry.model_validate(
        {**document, "name": stored.name, "settings": {**document["settings"], **secrets}}
    )


def _purpose(name: str) -> bytes:
    return b"server:" + name.encode()


def _with_secrets(given: Mapping[str, Any], held: MCPServerSettings | None) -> tuple[dict[str, Any], bool]:
    """Return settings with every secret's value, and whether one of them was taken from ``held``."""
    complete, kept = dict(given), False
    for part in sorted(SECRET_FIELDS):
        stored: Mapping[str, str] = getattr(held, part) if held is not None else {}
        values = given.get(part)
        if values is None:
            complete[part], kept = dict(stored), kept or bool(stored)
            continue
        if not isinstance(values, Mapping):
            continue  # validation says what is wrong
        complete[part] = {
            name: stored.get(name) if value is None else value for name, value in values.items()
        }
        missing = [name for name, value in complete[part].items() if value is None]
        if missing:
            raise InvalidArgumentsError(
                f"A value in {part} is null, but nothing is stored under that name: give the value.",
                details={"pointer": f"/settings/{part}"},
            )
        kept = kept or None in values.values()
    return complete, kept


def _fault(error: ValidationError, above: str) -> InvalidArgumentsError:
    """Say where it is wrong, without repeating what stood there: it may be a secret."""
    fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
    path = list(fault["loc"])
    if path and path[0] in SECRET_FIELDS:
        path = path[:1]
    if fault["type"] == "extra_forbidden":
        path, reason = path[:-1], "it has a member that is not known here"
    else:
        reason = fault["msg"].removeprefix("Value error, ").rstrip(".")
    pointer = above + "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    return InvalidArgumentsError(
        f"The server's settings are wrong: {reason[:1].lower()}{reason[1:]}.", details={"pointer": pointer}
    )
