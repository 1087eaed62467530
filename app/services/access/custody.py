"""Custody: no key custodian alone comes to hold a secret that restores, or that sends originals elsewhere.

A key that a custodian makes or rotates has the roles restorer and operator only after another custodian approves, or
after the delay that the tenant's policy sets, in which others can see the record and revoke the key. Who made a
custodian's secret within the delay may know it; such a pair does not count as two.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.contracts.policy import CustodyPolicy
from app.core.errors import ConflictError, ForbiddenError
from app.store.access.access import KeyInfo, SecretMaker, find_key
from app.store.access.policies import list_policies
from app.store.audit.audit import Transaction

GUARDED: Final = frozenset({Role.RESTORER, Role.OPERATOR})
"""Roles that no custodian grants alone: an operator can let tools of any server get originals."""
DELAY_ACTOR: Final = "custody"
"""Who acts, in the audit record, when a role takes effect because its delay has passed."""
_LONGEST: Final = timedelta(hours=168)
"""The longest delay that a policy can set."""
_PAGE: Final = 100


async def held_back(
    tx: Transaction, info: KeyInfo, caller: Caller, moment: datetime, *, exempt: bool
) -> KeyInfo:
    """Return a key whose new secret ``caller`` makes now, with guarded roles waiting unless ``exempt``."""
    made = SecretMaker(caller.key_id, moment)
    recent = tuple(maker for maker in info.makers if maker.at > moment - _LONGEST)
    whole = replace(info.granted(), makers=(*recent, made))
    guarded = whole.roles & GUARDED
    if exempt or not guarded:
        return whole
    return replace(
        whole,
        roles=whole.roles - guarded,
        pending_roles=guarded,
        pending_until=moment + await delay_of(tx, info.tenant, moment),
        pending_by=caller.key_id,
    )


async def delay_of(tx: Transaction, tenant: str, moment: datetime) -> timedelta:
    """Return the delay that counts in a tenant now.

    It is the longest of those that were in force within their own length: to shorten it is no way around it.
    """
    longest, replaced, before = timedelta(), None, None
    while replaced is None or moment - replaced < _LONGEST:
        page = await list_policies(tx, tenant, before=before, limit=_PAGE)
        for stored in page:
            delay = _delay(stored.document.get("custody"))
            if replaced is None or moment - replaced < delay:
                longest = max(longest, delay)
            replaced, before = stored.created, stored.version
        if len(page) < _PAGE:
            break
    default = _delay(None)  # in force before the first version was stored
    return max(longest, default) if replaced is None or moment - replaced < default else longest


def check_waits(info: KeyInfo, moment: datetime) -> None:
    """Refuse to approve a key that has ended or that waits for nothing."""
    state = info.state(moment)
    if state in {"revoked", "expired"}:
        raise ConflictError("The key has ended; create a new one.", details={"key": info.id, "state": state})
    if state != "pending":
        raise ConflictError("The key waits for no approval.", details={"key": info.id, "state": state})


async def check_other_hands(
    tx: Transaction, info: KeyInfo, approver: Caller, moment: datetime, trusted: Collection[str]
) -> None:
    """Refuse an approval by the requester, by the key itself, or by a key whose secret one of their makers knows."""
    since = moment - await delay_of(tx, info.tenant, moment)
    requester = info.pending_by or info.created_by
    shared = await _hands(tx, requester, since, trusted) & await _hands(tx, approver.key_id, since, trusted)
    if approver.key_id == info.id or shared:
        raise ForbiddenError(
            "Another key custodian must approve: not who requested it, not the key itself, and no key that either "
            "made or rotated within the delay. Without an approval the role takes effect when the delay has passed.",
            details={"key": info.id, "until": info.pending_until.isoformat() if info.pending_until else ""},
        )


async def _hands(tx: Transaction, key_id: str, since: datetime, trusted: Collection[str]) -> set[str]:
    """Return ``key_id`` with the keys that made its secrets after ``since``, and those that made theirs."""
    hands, open_ids = {key_id}, [key_id]
    while open_ids:
        stored = await find_key(tx, open_ids.pop(), tenant_name=None)
        if stored is None:
            continue
        makers = stored.info.makers or (SecretMaker(stored.info.created_by, stored.info.created),)
        fresh = {maker.by for maker in makers if maker.at > since} - hands - set(trusted)
        hands |= fresh
        open_ids += fresh
    return hands


def details_of(info: KeyInfo, *, exempt: bool) -> dict[str, Any]:
    """Return what the audit record says of custody when a secret was made."""
    if info.pending_until is not None:
        return {"state": "pending", "waits": _named(info), "until": info.pending_until.isoformat()}
    return {"custody": "exempt"} if exempt and info.roles & GUARDED else {}


def approval_details(info: KeyInfo, *, exempt: bool) -> dict[str, Any]:
    """Return what the audit record says when a key gets the roles for which it waited."""
    details = {"key": info.id, "granted": _named(info), "requested_by": info.pending_by}
    return {**details, "custody": "exempt"} if exempt else details


def _named(info: KeyInfo) -> str:
    return ",".join(sorted(info.pending_roles))


def _delay(section: Any) -> timedelta:
    policy = CustodyPolicy.model_validate(section or {})
    return timedelta(hours=policy.delay_h)
