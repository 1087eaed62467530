"""An event of the record in the form of OCSF (API Activity, 6003): who did what, how it ended, its place in the log.

The form has names, ids, keyed digests and counts, as the record has; nothing of what was sent, and no sealed content.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from app import __version__
from app.core.audit import (
    ALTERED_ACTION,
    GAP_ACTION,
    OUTCOME_FAILED,
    OUTCOME_OK,
    OUTCOME_REFUSED,
    OUTCOME_SENT,
    AuditEvent,
)
from app.core.contracts.sinks import SinkEvent
from app.core.transparency.hashing import leaf_hash
from app.services.audit.leaves import leaf_of
from app.store.audit.audit import RecordedEvent
from app.store.audit.log import LogLeaf

VERSION: Final = "1.9.0-dev"
"""The version of the schema by which the form was checked."""
_CLASS: Final = 6003
_OTHER, _DELETE = 99, 4
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ACTIVITIES: Final = {1: "Create", 2: "Read", 3: "Update", 4: "Delete", 99: "Other"}
_VERBS: Final = {
    1: ("create", "add", "put", "post", "import", "upload", "queue", "invite"),
    2: (
        "query",
        "get",
        "read",
        "list",
        "find",
        "find_value",
        "search",
        "export",
        "verify",
        "prove",
        "test",
        "entries",
        "content",
        "end_user",
        "reveal",
        "watch",
        "search_as",
    ),
    3: (
        "update",
        "patch",
        "change",
        "apply",
        "approve",
        "renew",
        "rotate",
        "rewrap",
        "set_expiry",
        "trust",
        "enable",
    ),
    4: ("delete", "remove", "erase", "revoke", "purge", "disable", "emptied"),
}
_ACTIVITY_OF: Final = {verb: activity for activity, verbs in _VERBS.items() for verb in verbs}
_SEVERITIES: Final = {1: "Informational", 2: "Low", 3: "Medium", 5: "Critical"}
_SEVERITY_OF: Final = {OUTCOME_OK: 1, OUTCOME_SENT: 1, OUTCOME_REFUSED: 2, OUTCOME_FAILED: 3}
_ACTIONS: Final = {1: "Allowed", 2: "Denied", 3: "Observed", 4: "Modified", 99: "Other"}
_DISPOSITIONS: Final = {2: "Blocked", 5: "Deleted", 9: "Restored", 11: "Corrected", 17: "Logged"}
_TRACE_PARTS: Final = 4


_LEFT_OUT: Final = ("counts", "details", "versions")
"""What of ``unmapped`` has no greatest length; a model's name comes from the details."""


def sink_event(leaf: LogLeaf, recorded: RecordedEvent) -> SinkEvent:
    """Return an event as sinks get it."""
    return _attested(ocsf(leaf, recorded), recorded.event)


def short_sink_event(leaf: LogLeaf, recorded: RecordedEvent) -> SinkEvent:
    """Return an event for a sink to which the whole one is too large; ``unmapped.left_out`` names what is missing."""
    document = ocsf(leaf, recorded)
    document.pop("ai_model", None)
    whole = document["unmapped"]
    document["unmapped"] = {name: value for name, value in whole.items() if name not in _LEFT_OUT}
    document["unmapped"]["left_out"] = [name for name in _LEFT_OUT if whole.get(name)]
    return _attested(document, recorded.event)


def _attested(document: dict[str, Any], event: AuditEvent) -> SinkEvent:
    document["attestation_list"] = [_attestation(document)]
    return SinkEvent(str(event.id), event.tenant, event.at, _is_success(event), _canonical(document))


def ocsf(leaf: LogLeaf, recorded: RecordedEvent) -> dict[str, Any]:
    """Return an event's document without its attestation."""
    event = recorded.event
    activity = _ACTIVITY_OF.get(event.action.rpartition(".")[2].rpartition("/")[2], _OTHER)
    severity = 5 if event.action in {GAP_ACTION, ALTERED_ACTION} else _SEVERITY_OF.get(event.outcome, 1)
    success = _is_success(event)
    document: dict[str, Any] = {
        "class_uid": _CLASS,
        "class_name": "API Activity",
        "category_uid": 6,
        "category_name": "Application Activity",
        "activity_id": activity,
        "activity_name": _ACTIVITIES[activity],
        "type_uid": _CLASS * 100 + activity,
        "type_name": f"API Activity: {_ACTIVITIES[activity]}",
        "severity_id": severity,
        "severity": _SEVERITIES[severity],
        "time": (event.at - _EPOCH) // timedelta(milliseconds=1),
        "duration": event.duration_us // 1000,
        "status_id": 1 if success else 2,
        "status": "Success" if success else "Failure",
        "message": f"{event.action}: {event.outcome}",
        "metadata": _metadata(leaf, event),
        "actor": _actor(event),
        # The record keeps no addresses of callers, but what kind they are of.
        "src_endpoint": {"name": f"{event.address_class} address" if event.address_class else "not recorded"},
        "api": _api(event),
        **_control(event),
        "unmapped": _unmapped(leaf, recorded),
    }
    if event.error_code is not None:
        document["status_code"] = event.error_code
    if event.scope_ref is not None:
        document["resources"] = [
            {"uid": event.scope_ref, "type": "vault scope", "role_id": 1, "role": "Target"}
        ]
    document |= _ai_operation(event) | _trace(event)
    return document


def _metadata(leaf: LogLeaf, event: AuditEvent) -> dict[str, Any]:
    profiles = ["record_integrity", "security_control"]
    profiles += ["ai_operation"] if event.middleware is not None else []
    profiles += ["trace"] if _trace(event) else []
    metadata: dict[str, Any] = {
        "version": VERSION,
        "uid": str(event.id),
        "sequence": leaf.position,
        "product": {"name": "Sluice", "vendor_name": "Sluice", "version": __version__},
        "profiles": sorted(profiles),
        "log_name": "audit",
        "tenant_uid": event.tenant,
    }
    if event.request_id is not None:
        metadata["correlation_uid"] = event.request_id
    return metadata


def _actor(event: AuditEvent) -> dict[str, Any]:
    """Return the key that acted, and the end user whom it named, by the keyed digest."""
    user: dict[str, Any] = {"uid": event.on_behalf_of or event.actor}
    if event.roles:
        user["groups"] = [{"name": role, "type": "role"} for role in sorted(event.roles)]
    actor: dict[str, Any] = {"user": user, "app_uid": event.actor}
    return actor | ({"app_name": event.key_name} if event.key_name is not None else {})


def _api(event: AuditEvent) -> dict[str, Any]:
    api: dict[str, Any] = {"operation": event.action, "service": {"name": "sluice"}}
    if event.request_id is not None:
        api["request"] = {"uid": event.request_id}
    if event.error_code is not None:
        api["response"] = {"error": event.error_code}
    return api


def _control(event: AuditEvent) -> dict[str, Any]:
    """Return what the service decided; events of earlier releases say it by their outcome and counts."""
    changes = event.decision == "change" or (event.decision is None and bool(event.counts))
    if event.outcome == OUTCOME_REFUSED or event.decision == "block":
        action, disposition = 2, 2
    elif event.outcome == OUTCOME_FAILED:
        action, disposition = _OTHER, 17
    elif event.decision == "flag":
        action, disposition = 3, 17
    elif changes:
        action, disposition = 4, 9 if "restor" in (event.middleware or event.action) else 11
    elif _ACTIVITY_OF.get(event.action.rpartition(".")[2]) == _DELETE:
        action, disposition = 1, 5
    else:
        action, disposition = 1, 17
    control: dict[str, Any] = {
        "action_id": action,
        "action": _ACTIONS[action],
        "disposition_id": disposition,
        "disposition": _DISPOSITIONS[disposition],
        "is_alert": event.action in {GAP_ACTION, ALTERED_ACTION},
    }
    if event.policy_version is not None:
        control["policy"] = {
            "name": "policy of the tenant",
            "uid": event.tenant,
            "version": str(event.policy_version),
        }
    return control


def _ai_operation(event: AuditEvent) -> dict[str, Any]:
    """Return which middleware ran; the texts of the profile stay empty, since the record has none."""
    if event.middleware is None:
        return {}
    context: dict[str, Any] = {"service": {"name": event.middleware}}
    if event.scope_ref is not None:
        context["uid"] = event.scope_ref
    provider, model = event.details.get("provider"), event.details.get("model")
    named = isinstance(provider, str) and isinstance(model, str)
    return {"message_context": context} | (
        {"ai_model": {"ai_provider": provider, "name": model}} if named else {}
    )


def _trace(event: AuditEvent) -> dict[str, Any]:
    parts = (event.traceparent or "").split("-")
    return {"trace": {"uid": parts[1]}} if len(parts) == _TRACE_PARTS else {}


def _unmapped(leaf: LogLeaf, recorded: RecordedEvent) -> dict[str, Any]:
    """Return what the class has no attribute for, and the event's place in the tenant's log."""
    event = recorded.event
    unmapped: dict[str, Any] = {
        "log": {"position": leaf.position, "leaf": leaf_hash(leaf_of(recorded)).hex()},
        "outcome": event.outcome,
        "counts": dict(event.counts),
        "details": dict(event.details),
        "blocks": event.blocks,
        "bytes_in": event.bytes_in,
        "bytes_out": event.bytes_out,
        "duration_us": event.duration_us,
    }
    if event.versions is not None:
        unmapped["versions"] = dict(event.versions)
    optional = {"middleware": event.middleware, "in_hmac": event.in_hmac, "out_hmac": event.out_hmac}
    if recorded.number is not None:
        optional |= {"writer": recorded.number.writer}
        unmapped["writer_seq"] = recorded.number.number
    return unmapped | {name: value for name, value in optional.items() if value is not None}


def _attestation(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of a document with this attestation, but for the fingerprint itself."""
    attestation: dict[str, Any] = {"authority_uid": "sluice"}
    signed = {**document, "attestation_list": [attestation]}
    return attestation | {
        "fingerprint": {
            "algorithm_id": 3,
            "algorithm": "SHA-256",
            "value": hashlib.sha256(_canonical(signed)).hexdigest(),
            "encoding_id": 1,
            "encoding": "Hex",
            "serialization_id": 2,
            "serialization": "JCS",
        }
    }


def _canonical(document: Mapping[str, Any]) -> bytes:
    """Return JSON as RFC 8785 has it, of whole numbers, texts and names that sort alike by code points."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _is_success(event: AuditEvent) -> bool:
    return event.outcome in {OUTCOME_OK, OUTCOME_SENT}
