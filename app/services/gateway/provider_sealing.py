"""A provider's entry as stored, as shown and as submitted: three forms that differ in their secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from app.core.errors import InternalError, InvalidArgumentsError
from app.core.gateway.providers import PROVIDER_SECRETS, ProviderEntry, reached
from app.core.strictjson import dumps, loads
from app.engines.cipher import RecordKeys, SealBrokenError
from app.store.gateway.providers import StoredProvider

KEY: Final = "apiKey"
HEADERS: Final = "extraHeaders"
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
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path, reason = list(fault["loc"]), str(fault["msg"]).removeprefix("Value error, ").rstrip(".")
        if path and path[0] in _SECRET_MEMBERS:
            path = path[:1]
        if fault["type"] == "extra_forbidden":
            # The last step is the unknown name itself: the caller's text, not ours.
            path, reason = path[:-1], "it has an unknown member"
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        place = f" at {pointer}" if pointer else ""
        raise InvalidArgumentsError(
            f"The provider is wrong{place}: {reason[:1].lower()}{reason[1:]}.", details={"pointer": pointer}
        ) from None


def shown_provider(entry: ProviderEntry) -> dict[str, Any]:
    """Return an entry as operators see it: no key, and extra headers by name, with null for each value."""
    document = entry.model_dump(mode="json", by_alias=True, exclude=set(PROVIDER_SECRETS))
    return {**document, HEADERS: dict.fromkeys(entry.extra_headers), "hasApiKey": entry.api_key is not None}


def stored_document(entry: ProviderEntry) -> dict[str, Any]:
    """Return what the database stores unencrypted: everything except the name and the secrets."""
    return entry.model_dump(mode="json", by_alias=True, exclude={"name", *PROVIDER_SECRETS})


def sealed_secrets(keys: RecordKeys, tenant: str, entry: ProviderEntry) -> bytes | None:
    """Return the secrets as ciphertext, valid for this tenant and provider only; None if there are none."""
    if entry.api_key is None and not entry.extra_headers:
        return None
    secrets = {KEY: entry.api_key, HEADERS: entry.extra_headers}
    return keys.seal(tenant, _purpose(entry.name), dumps(secrets))


def opened_provider(keys: RecordKeys, stored: StoredProvider) -> ProviderEntry:
    """Return the whole entry of a stored provider, secrets included; raise InternalError if they are lost."""
    secrets: dict[str, Any] = {}
    if stored.secrets is not None:
        try:
            secrets = loads(keys.open(stored.tenant, _purpose(stored.name), stored.secrets))
        except SealBrokenError:
            raise InternalError(
                "The secrets of the provider cannot be decrypted; supply its settings again.",
                details={"provider": stored.name},
            ) from None
    return ProviderEntry.model_validate({**stored.document, **secrets, "name": stored.name})


def changed_members(before: ProviderEntry, after: ProviderEntry) -> str:
    """Return the names of what differs, separated by commas; never a value."""
    names = {
        name: info.alias or name
        for name, info in ProviderEntry.model_fields.items()
        if getattr(before, name) != getattr(after, name)
    }
    return ",".join(sorted(names.values()))


def _purpose(name: str) -> bytes:
    return b"provider:" + name.encode()


def _with_secrets(submitted: Mapping[str, Any], stored: ProviderEntry | None) -> tuple[dict[str, Any], bool]:
    """Return a document with every secret's value, and whether one of them was taken from ``stored``."""
    complete, kept = dict(submitted), False
    if complete.get(KEY) is None:
        complete[KEY] = stored.api_key if stored is not None else None
        kept = complete[KEY] is not None
    stored_headers = stored.extra_headers if stored is not None else {}
    headers = complete.get(HEADERS)
    if headers is None:
        complete[HEADERS] = dict(stored_headers)
        return complete, kept or bool(stored_headers)
    if not isinstance(headers, Mapping):
        return complete, kept  # validation reports the error
    kept = kept or None in headers.values()
    complete[HEADERS] = {
        name: stored_headers.get(name) if value is None else value for name, value in headers.items()
    }
    if None in complete[HEADERS].values():
        raise InvalidArgumentsError(
            "A value in extraHeaders is null, but nothing is stored under that name: supply the value.",
            details={"pointer": f"/{HEADERS}"},
        )
    return complete, kept
