"""Check what a policy says of identities where the model alone cannot: who changes it, and which issuers there are."""

from collections.abc import Callable, Mapping
from typing import Final

from app.core.access import Caller, Role
from app.core.contracts.identity_policy import IdentityPolicy
from app.core.errors import ForbiddenError, InvalidArgumentsError
from app.core.identities import TrustedIssuer
from app.services.access.credentials import Authenticator

_MAKING_CALLERS: Final = frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN})

Issuers = Callable[[], Mapping[str, TrustedIssuer]]
"""Returns the issuers whose tokens are taken now, by their names."""


def trusted_issuers(authenticator: Authenticator) -> Issuers:
    """Return what knows the issuers of this service."""

    def listed() -> Mapping[str, TrustedIssuer]:
        tokens = authenticator.tokens
        trusted = tokens.trusted if tokens is not None else ()
        return {keys.issuer.issuer: keys.issuer for keys in trusted}

    return listed


def check_identity(before: IdentityPolicy, after: IdentityPolicy, caller: Caller, issuers: Issuers) -> None:
    """Raise what refuses ``after`` in the place of ``before``.

    That is ForbiddenError for a caller who may not make callers, InvalidArgumentsError for a rule that asks for nothing
    of a claim, and for one that names groups of the mirror where its issuer does not say how people are found there.
    """
    if after == before:
        return
    if not caller.roles.issuperset(_MAKING_CALLERS):
        raise ForbiddenError(
            "Rules that make callers need the roles operator and key-custodian, as keys need the latter.",
            details={"required": [Role.KEY_CUSTODIAN], "pointer": "/identity"},
        )
    trusted = issuers()
    for number, rule in enumerate(after.rules):
        # What is stored already is read and maps nobody: a model that refused it would refuse the whole policy.
        if [] in rule.when.values():
            pointer = f"/identity/rules/{number}/when"
            raise InvalidArgumentsError(
                f"The policy is wrong at {pointer}: an empty list asks for nothing of the claim, and maps nobody. "
                "Name what the claim must have, or leave the claim out.",
                details={"pointer": pointer},
            )
        issuer = trusted.get(rule.issuer)
        if rule.directory is not None and issuer is not None and issuer.provisioning is None:
            pointer = f"/identity/rules/{number}/directory"
            raise InvalidArgumentsError(
                f"The policy is wrong at {pointer}: nothing says how people of this issuer are found in the mirror. "
                "Give the issuer provisioning, or let the rule go by claims alone.",
                details={"pointer": pointer},
            )
