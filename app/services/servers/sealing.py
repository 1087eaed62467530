"""A server's entry as stored, as shown and as submitted: three forms that differ in their secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from app.core.catalog.primitives import Disclosure
from app.core.catalog.servers import SECRET_FIELDS, MCPServerSettings, ServerEntry
from app.core.errors import InvalidArgumentsError
from app.engines.cipher import RecordKeys
from app.services.sealed_entries import complete_secrets, open_secrets, seal_secrets, settings_fault
from app.store.servers import StoredServer

_KIND: Final = "server"
_SUBJECT: Final = "The server's settings are"
_BESIDE_SETTINGS: Final = ("tool_filter", "aliases", "disclosure")
_TARGET_FIELDS: Final = ("type", "url", "command", "args", "cwd")


@dataclass(frozen=True, slots=True)
class SubmittedServer:
    """An operator's settings for a server.

    ``settings`` has the shape of an entry of ``mcpServers``. A value of None in ``env`` or ``headers`` stands for what
    is stored under that name, an absent ``env`` or ``headers`` for all that is stored.
    """

    settings: Mapping[str, Any] = field(repr=False)
    tool_filter: list[str] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    disclosure: Disclosure = "flat"

    def entry(self, name: str, stored: MCPServerSettings | None = None) -> ServerEntry:
        """Return the whole entry, with secrets that are not repeated taken from ``stored``."""
        complete, kept = _with_secrets(self.settings, stored)
        try:
            settings = MCPServerSettings.model_validate(complete)
        except ValidationError as error:
            raise settings_fault(error, _SUBJECT, SECRET_FIELDS, "/settings") from None
        if stored is not None and kept and reached(settings) != reached(stored):
            raise InvalidArgumentsError(
                "This changes which server is reached. Supply the values of env, headers and credentials again so "
                "stored secrets do not go to it.",
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
            raise settings_fault(error, _SUBJECT, SECRET_FIELDS) from None


def check_credentials(settings: MCPServerSettings) -> None:
    """Raise InvalidArgumentsError where the settings lack the credential that their ``auth`` needs."""
    if settings.missing_credential is not None:
        raise InvalidArgumentsError(
            f"The server's auth needs {settings.missing_credential} in credentials.",
            details={"pointer": "/settings/credentials"},
        )


def reached(settings: MCPServerSettings) -> Mapping[str, Any]:
    """Return the part of the settings that decides which server is reached."""
    target = {name: getattr(settings, name) for name in _TARGET_FIELDS}
    return {**target, "auth": settings.auth.reached if settings.auth is not None else None}


def connection_of(settings: MCPServerSettings) -> tuple[Any, ...]:
    """Return the part of the settings that, when changed, requires a new approval; secrets included."""
    return (
        reached(settings),
        settings.auth,
        *(getattr(settings, part) for part in sorted(SECRET_FIELDS)),
    )


def changed_parts(before: ServerEntry, after: ServerEntry) -> str:
    """Return the names of what differs, separated by commas; never a value."""
    settings = [
        name
        for name in MCPServerSettings.model_fields
        if getattr(before.settings, name) != getattr(after.settings, name)
    ]
    beside = [name for name in _BESIDE_SETTINGS if getattr(before, name) != getattr(after, name)]
    return ",".join(sorted(settings + beside))


def shown(settings: MCPServerSettings) -> dict[str, Any]:
    """Return settings as operators see them: secrets by name, with null for each value."""
    document = settings.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=set(SECRET_FIELDS))
    for part in sorted(SECRET_FIELDS):
        document[part] = dict.fromkeys(getattr(settings, part))
    if settings.auth is None and not settings.credentials:
        del document["credentials"]
    return document


def document_of(entry: ServerEntry) -> dict[str, Any]:
    """Return what the database stores unencrypted: everything except the name and the secrets."""
    return entry.model_dump(
        mode="json",
        by_alias=True,
        exclude={"name": True, "settings": dict.fromkeys(SECRET_FIELDS, True)},
    )


def sealed(keys: RecordKeys, tenant: str, entry: ServerEntry) -> bytes | None:
    """Return the secrets as ciphertext, valid for this tenant and server only; None if there are none."""
    secrets = {part: getattr(entry.settings, part) for part in sorted(SECRET_FIELDS)}
    return seal_secrets(keys, tenant, _KIND, entry.name, secrets)


def opened(keys: RecordKeys, stored: StoredServer) -> ServerEntry:
    """Return the whole entry of a stored server, secrets included."""
    secrets = open_secrets(keys, _KIND, stored)
    document = dict(stored.document)
    return ServerEntry.model_validate(
        {**document, "name": stored.name, "settings": {**document["settings"], **secrets}}
    )


def _with_secrets(
    submitted: Mapping[str, Any], stored: MCPServerSettings | None
) -> tuple[dict[str, Any], bool]:
    """Return settings with every secret's value, and whether one of them was taken from ``stored``."""
    complete, kept = dict(submitted), False
    for part in sorted(SECRET_FIELDS):
        stored_values = getattr(stored, part) if stored is not None else {}
        complete[part], was_kept = complete_secrets(
            submitted.get(part), stored_values, part, f"/settings/{part}"
        )
        kept = kept or was_kept
    return complete, kept
