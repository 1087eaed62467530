"""Try a token over the network: whom it would make a caller, said to custodians of the tenant alone."""

from dataclasses import replace
from typing import Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.errors import NotFoundError
from app.core.request import RequestInfo
from app.services.access.access import AccessService
from app.services.access.token_callers import TokenTrial

EXPLAIN: Final = "identity.explain"


async def explained(
    access: AccessService, caller: Caller, token: str, request: RequestInfo | None = None
) -> TokenTrial:
    """Say what would become of ``token``; needs the role key custodian, and is on record without the token.

    Callers who do not reach all tenants see the rules of their own. Raises NotFoundError where no issuer is trusted.
    """
    async with access.audit.refusals(caller, EXPLAIN, request):
        caller.require(Role.KEY_CUSTODIAN)
        tokens = access.authenticator.tokens
        if tokens is None:
            raise NotFoundError("No issuer is trusted here: set SLUICE_AUTH__ISSUERS (docs/identity.md).")
    trial = await tokens.tried(token, access.now())
    await access.audit.record(access.audit.new_event(caller, EXPLAIN, OUTCOME_OK, request))
    return trial if access.authority.reaches_all(caller) else _within(trial, caller.tenant)


def _within(trial: TokenTrial, tenant: str) -> TokenTrial:
    """Return what a trial says of one tenant: where the rule of another counts, nothing maps the token here."""
    first = next(
        (rule for rule, names in zip(trial.rules, trial.missing, strict=True) if not names),
        None,
    )
    own = [
        (rule, names) for rule, names in zip(trial.rules, trial.missing, strict=True) if rule.tenant == tenant
    ]
    if trial.issuer is not None and not own:
        # Whom this tenant does not trust is a stranger, whoever else trusts it.
        return TokenTrial("issuer")
    shown = replace(trial, rules=tuple(rule for rule, _ in own), missing=tuple(names for _, names in own))
    if first is None or first.tenant == tenant:
        return shown
    return replace(shown, reason="unmapped", rule=None)
