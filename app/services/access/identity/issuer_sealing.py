"""An issuer as stored, as shown and as submitted: three forms of one entry that differ in their secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from app.core.access import SYSTEM_TENANT
from app.core.contracts.issuers import IssuerSettings
from app.core.errors import InvalidArgumentsError
from app.core.identities import BY_SETTINGS_ALONE
from app.engines.cipher import RecordKeys
from app.services.sealed_entries import open_secrets, seal_secrets, settings_fault
from app.store.access.issuers import StoredIssuer

SECRET: Final = "clientSecret"  # noqa: S105 - the name of a member
_SECRET_FIELD: Final = "client_secret"  # noqa: S105 - the other name that settings may give it
SECRET_MEMBERS: Final = ("introspection", "console")
"""The members of an entry that hold a secret each."""
LONGEST_NAME: Final = 500
MOST_RULES: Final = 200
MOST_NAMES: Final = 100
_KIND: Final = "issuer"
_UNSEALED: Final = {name: {_SECRET_FIELD} for name in SECRET_MEMBERS}
_SETS: Final = ("algorithms",)
_RULE_SETS: Final = ("roles", "grants")
_NO_SYSTEM: Final = (
    "Callers of the tenant system reach every tenant: only the settings map to it. Name another."
)


@dataclass(frozen=True, slots=True)
class SubmittedIssuer:
    """An operator's entry of an issuer, in the form of the settings.

    An absent or null ``clientSecret`` of ``introspection`` or ``console`` stands for what is stored; an empty one of
    ``console`` removes it.
    """

    document: Mapping[str, Any] = field(repr=False)

    def entry(self, stored: IssuerSettings | None = None) -> IssuerSettings:
        """Return the whole entry, with secrets that are not repeated taken from ``stored``.

        Raises InvalidArgumentsError for what is no entry, or none that operators may store, without a value.
        """
        complete, kept = dict(self.document), False
        for name in SECRET_MEMBERS:
            member = complete.get(name)
            if isinstance(member, Mapping):
                before = getattr(stored, name) if stored is not None else None
                complete[name], is_kept = _with_secret(member, _secret(before))
                kept = kept or (is_kept and name == "introspection")
        try:
            entry = IssuerSettings.model_validate(complete)
        except ValidationError as error:
            raise settings_fault(error, "The issuer is", ()) from None
        check_stored(entry)
        if kept and stored is not None and _asked_at(stored) != _asked_at(entry):
            raise InvalidArgumentsError(
                "This changes who is shown the secret of introspection. Supply clientSecret again, so that what is "
                "stored does not go there.",
                details={"pointer": "/introspection/clientSecret"},
            )
        return entry


def check_stored(entry: IssuerSettings) -> None:
    """Raise InvalidArgumentsError for an entry that the settings alone may have: one that gives too much."""
    if len(entry.issuer) > LONGEST_NAME:
        raise _fault(f"An issuer's address has at most {LONGEST_NAME} characters.", "/issuer")
    if len(entry.rules) > MOST_RULES:
        raise _fault(f"An issuer has at most {MOST_RULES} rules.", "/rules")
    for name in ("audience", "tenants", "scopes"):
        if len(getattr(entry, name)) > MOST_NAMES:
            raise _fault(f"This list has at most {MOST_NAMES} entries.", f"/{name}")
    for number, rule in enumerate(entry.rules):
        if refused := sorted(BY_SETTINGS_ALONE & rule.roles):
            raise _fault(
                f"Only the settings of the service map to {', '.join(refused)}: a key with these roles takes a second "
                "person. Write the rule into SLUICE_AUTH__ISSUERS, or give a key.",
                f"/rules/{number}/roles",
            )
        if rule.tenant == SYSTEM_TENANT:
            raise _fault(_NO_SYSTEM, f"/rules/{number}/tenant")
    if SYSTEM_TENANT in entry.tenants:
        raise _fault(_NO_SYSTEM, f"/tenants/{entry.tenants.index(SYSTEM_TENANT)}")


def shown_issuer(entry: IssuerSettings) -> dict[str, Any]:
    """Return an entry as operators see it, and may send it again: null stands for each secret."""
    document = stored_document(entry)
    for name in SECRET_MEMBERS:
        if document[name] is not None:
            document[name][SECRET] = None
    return document


def secrets_of(entry: IssuerSettings) -> tuple[str, ...]:
    """Return the members that have a secret."""
    return tuple(name for name in SECRET_MEMBERS if _secret(getattr(entry, name)) is not None)


def stored_document(entry: IssuerSettings) -> dict[str, Any]:
    """Return what the database stores unencrypted: everything except the secrets; what is a set in order."""
    document: dict[str, Any] = entry.model_dump(mode="json", by_alias=True, exclude=_UNSEALED)
    for name in _SETS:
        document[name] = sorted(document[name])
    for rule in document["rules"]:
        rule.update({name: sorted(rule[name]) for name in _RULE_SETS})
    if document["introspection"] is not None:
        document["introspection"]["tokens"].sort()
    return document


def sealed_secrets(keys: RecordKeys, entry: IssuerSettings) -> bytes | None:
    """Return the secrets as ciphertext, valid for this issuer only; None if there are none."""
    secrets = {name: _secret(getattr(entry, name)) for name in SECRET_MEMBERS}
    return seal_secrets(keys, SYSTEM_TENANT, _KIND, entry.issuer, secrets)


def opened_issuer(keys: RecordKeys, stored: StoredIssuer) -> IssuerSettings:
    """Return the whole entry of a stored issuer.

    Raises InternalError where its secrets are lost, ValueError or InvalidArgumentsError where it is none any more.
    """
    secrets, document = open_secrets(keys, _KIND, stored), dict(stored.document)
    for name in SECRET_MEMBERS:
        if document.get(name) is not None:
            document[name] = {**document[name], SECRET: secrets.get(name)}
    entry = IssuerSettings.model_validate(document)
    check_stored(entry)
    return entry


def changed_members(before: IssuerSettings, after: IssuerSettings) -> str:
    """Return the names of what differs, separated by commas; never a value."""
    names = {
        name: info.alias or name
        for name, info in IssuerSettings.model_fields.items()
        if getattr(before, name) != getattr(after, name)
    }
    return ",".join(sorted(names.values()))


def _with_secret(submitted: Mapping[str, Any], stored: str | None) -> tuple[dict[str, Any], bool]:
    complete = dict(submitted)
    if SECRET not in complete and _SECRET_FIELD in complete:
        complete[SECRET] = complete.pop(_SECRET_FIELD)
    if complete.get(SECRET) is not None:
        return {**complete, SECRET: complete[SECRET] or None}, False
    return {**complete, SECRET: stored}, stored is not None


def _secret(member: Any) -> str | None:
    secret = getattr(member, _SECRET_FIELD, None)
    return secret.get_secret_value() if secret is not None else None


def _asked_at(entry: IssuerSettings) -> str | None:
    """Return where an issuer is asked about tokens, None: where its own metadata says."""
    return entry.introspection.uri if entry.introspection is not None else None


def _fault(message: str, pointer: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(message, details={"pointer": pointer})
