"""A provider's entry as stored, as shown and as submitted: three forms that differ in their secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from app.core.errors import InvalidArgumentsError
from app.core.gateway.providers import PROVIDER_SECRETS, ProviderEntry, reached
from app.engines.cipher import RecordKeys
from app.services.sealed_entries import complete_secrets, open_secrets, seal_secrets, settings_fault
from app.store.gateway.providers import StoredProvider

KEY: Final = "apiKey"
HEADERS: Final = "extraHeaders"
_KIND: Final = "provider"
_SECRET_MEMBERS: Final = (KEY, HEADERS)


@dataclass(frozen=True, slots=True)
class SubmittedProvider:
    """An operator's settings for a provider, in the form of the declarative file without the name.

    An absent or null ``apiKey`` or ``extraHeaders``, and a null in ``extraHeaders``, stand for what is stored; an
    empty ``apiKey`` removes the key.
    """

    document: Mapping[str, Any] = field(repr=False)

    def entry(self, name: str, stored: ProviderEntry | None = None) -> ProviderEntry:
        """Return the whole entry, with secrets that are not repeated taken from ``stored``."""
        complete, kept = _with_secrets(self.document, stored)
        entry = provider_of({**complete, "name": name})
        if stored is None:
            return entry
        if kept and reached(entry) != reached(stored):
            raise InvalidArgumentsError(
                "This changes which server is reached. Supply the values of apiKey and extraHeaders again so stored "
                "secrets do not go to it.",
                details={"pointer": "/baseUrl"},
            )
        return entry if entry.order is not None else entry.model_copy(update={"order": stored.order})


def provider_of(document: Mapping[str, Any]) -> ProviderEntry:
    """Return the entry that ``document`` describes, or raise InvalidArgumentsError without repeating a value."""
    try:
        return ProviderEntry.model_validate(document)
    except ValidationError as error:
        raise settings_fault(error, "The provider is", _SECRET_MEMBERS) from None


def shown_provider(entry: ProviderEntry) -> dict[str, Any]:
    """Return an entry as operators see it: no key, and extra headers by name, with null for each value."""
    document = entry.model_dump(mode="json", by_alias=True, exclude=set(PROVIDER_SECRETS))
    return {**document, HEADERS: dict.fromkeys(entry.extra_headers), "hasApiKey": entry.api_key is not None}


def stored_document(entry: ProviderEntry) -> dict[str, Any]:
    """Return what the database stores unencrypted: everything except the name and the secrets."""
    return entry.model_dump(mode="json", by_alias=True, exclude={"name", *PROVIDER_SECRETS})


def sealed_secrets(keys: RecordKeys, tenant: str, entry: ProviderEntry) -> bytes | None:
    """Return the secrets as ciphertext, valid for this tenant and provider only; None if there are none."""
    secrets = {KEY: entry.api_key, HEADERS: entry.extra_headers}
    return seal_secrets(keys, tenant, _KIND, entry.name, secrets)


def opened_provider(keys: RecordKeys, stored: StoredProvider) -> ProviderEntry:
    """Return the whole entry of a stored provider, secrets included; raise InternalError if they are lost."""
    secrets = open_secrets(keys, _KIND, stored)
    return ProviderEntry.model_validate({**stored.document, **secrets, "name": stored.name})


def changed_members(before: ProviderEntry, after: ProviderEntry) -> str:
    """Return the names of what differs, separated by commas; never a value."""
    names = {
        name: info.alias or name
        for name, info in ProviderEntry.model_fields.items()
        if getattr(before, name) != getattr(after, name)
    }
    return ",".join(sorted(names.values()))


def _with_secrets(submitted: Mapping[str, Any], stored: ProviderEntry | None) -> tuple[dict[str, Any], bool]:
    """Return a document with every secret's value, and whether one of them was taken from ``stored``."""
    complete = dict(submitted)
    if complete.get(KEY) is None:
        complete[KEY] = stored.api_key if stored is not None else None
    key_kept = submitted.get(KEY) is None and complete[KEY] is not None
    stored_headers = stored.extra_headers if stored is not None else {}
    complete[HEADERS], kept = complete_secrets(submitted.get(HEADERS), stored_headers, HEADERS, f"/{HEADERS}")
    return complete, key_kept or kept
