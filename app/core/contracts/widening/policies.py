"""Which rights a change of a policy widens: what callers may do after it, or be shown, that they could not before.

A rule looks at one member. It reports what it cannot prove to be narrower, so a change that it does not report widens
nothing; a member without a rule is reported on every change.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from app.core.contracts.gateway_policy import GatewayPipeline
from app.core.contracts.policy import Grant, Limits, Policy, ToolHook
from app.core.contracts.policy_steps import Step
from app.core.contracts.widening.arguments import CHECKS, UNSET, hides_as_much
from app.core.contracts.widening.end_users import end_user_widenings
from app.core.contracts.widening.gateway import gateway_widenings
from app.core.globs import Glob

PROTECTS: Final = frozenset(
    {
        "pii_redaction",
        "secret_redaction",
        "content_moderation",
        "prompt_injection",
        "audit_logging",
        "timestamp_injector",
    }
)
"""Steps that give back nothing that another step took away; another one, such as a pipeline, may restore."""
_HARMLESS: Final = frozenset({"audit_logging", "timestamp_injector"})
LONG_TTL_S: Final = 30 * 24 * 3600
"""What an installation keeps scopes for unless its settings say otherwise."""


class Widening(NamedTuple):
    """One right that a change widens: a JSON pointer into the policy and a phrase about it."""

    pointer: str
    reason: str


Rule = Callable[[Policy, Policy], Iterator[Widening]]


def widenings(before: Policy, after: Policy) -> list[Widening]:
    """Return what ``after`` allows and ``before`` does not, in the order of the policy's members."""
    changes: list[Widening] = []
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    for name in Policy.model_fields:
        if not _same(old[name], new[name]):
            rule = RULES.get(name)
            changes += rule(before, after) if rule else [Widening(f"/{name}", "may allow more")]
    return changes


def _allowed(before: Policy, after: Policy) -> Iterator[Widening]:
    yield from _longer("/allowed_middlewares", before.allowed_middlewares, after.allowed_middlewares)


def _defaults(before: Policy, after: Policy) -> Iterator[Widening]:
    """Callers override defaults, so no right hangs on them; but nobody does in passages and in the gateway."""
    in_passages = {step.name for hook in before.passages for step in hook.results}
    entries = [*before.gateway.pipelines, GatewayPipeline()]
    in_gateway = {step.name for entry in entries for step in [*entry.outbound, *entry.inbound]}
    for name, argument, old, new in _differences(before.default_arguments, after.default_arguments):
        users = [
            user for user, names in (("a passage", in_passages), ("the gateway", in_gateway)) if name in names
        ]
        fixed = (policy.fixed_arguments.get(name, {}) for policy in (before, after))
        if users and not all(argument in each for each in fixed) and _may_show_more(name, argument, old, new):
            pointer = f"/default_arguments/{_escaped(name)}/{_escaped(argument)}"
            yield Widening(pointer, f"{_changed(old, new)}, which {users[0]} uses")


def _fixed(before: Policy, after: Policy) -> Iterator[Widening]:
    """Compare what is set anew with the default that callers had; what is set no more, they choose."""
    for name, argument, old, new in _differences(before.fixed_arguments, after.fixed_arguments):
        if old is UNSET:
            usual = before.default_arguments.get(name, {}).get(argument, UNSET)
            widens = name in CHECKS and _may_show_more(name, argument, usual, new)
        else:
            widens = new is UNSET or _may_show_more(name, argument, old, new)
        if widens:
            pointer = f"/fixed_arguments/{_escaped(name)}/{_escaped(argument)}"
            yield Widening(pointer, _changed(old, new))


def _timeouts(before: Policy, after: Policy) -> Iterator[Widening]:
    for name, limit in before.timeouts_ms.items():
        pointer = f"/timeouts_ms/{_escaped(name)}"
        if name not in after.timeouts_ms:
            yield Widening(pointer, "a limit removed")
        elif after.timeouts_ms[name] > limit:
            yield Widening(pointer, "a higher limit")


def _audit_content(before: Policy, after: Policy) -> Iterator[Widening]:
    if after.audit_content and not before.audit_content:
        yield Widening("/audit_content", "content is kept in the record")


def _audit_end_users(before: Policy, after: Policy) -> Iterator[Widening]:
    if after.audit_end_users and not before.audit_end_users:
        yield Widening("/audit_end_users", "names of end users are kept in the record")


def _scope_ttl(before: Policy, after: Policy) -> Iterator[Widening]:
    if (after.scope_ttl_s or LONG_TTL_S) > (before.scope_ttl_s or LONG_TTL_S):
        yield Widening("/scope_ttl_s", "originals are kept for longer")


def _limits(before: Policy, after: Policy) -> Iterator[Widening]:
    for name in Limits.model_fields:
        if getattr(after.limits, name) > getattr(before.limits, name):
            yield Widening(f"/limits/{name}", "a higher limit")


def _grants(before: Policy, after: Policy) -> Iterator[Widening]:
    if before.grants is None:
        return
    if after.grants is None:
        yield Widening("/grants", "everything instead of what is granted")
        return
    for number, grant in enumerate(after.grants):
        if not _covered(grant, before.grants):
            yield Widening(f"/grants/{number}", "no earlier grant covers it")


def _covered(grant: Grant, earlier: Collection[Grant]) -> bool:
    """Return whether whoever has ``grant`` had each part of it from one of the ``earlier`` grants."""
    theirs = [
        other for other in earlier if _within(grant.keys, other.keys) and _within(grant.roles, other.roles)
    ]
    groups = {name for other in theirs for name in other.groups}
    members = [member for other in theirs for member in other.members]
    return groups.issuperset(grant.groups) and all(
        any(
            other == member
            or (
                other.kind is member.kind
                and other.server in (None, member.server)
                and (
                    other.name == member.name
                    or (Glob(member.name).literal and Glob(other.name).matches(member.name))
                )
            )
            for other in members
        )
        for member in grant.members
    )


def _passages(before: Policy, after: Policy) -> Iterator[Widening]:
    """Only the first hook that matches applies, so that their order counts: a hook in between may take one away."""
    for number, hook in enumerate(before.passages):
        pointer = f"/passages/{number}"
        if number >= len(after.passages):
            yield Widening(pointer, "a passage removed")
            return
        reason = _weakened(hook, after.passages[number])
        if reason is not None:
            yield Widening(pointer, reason)
    for number in range(len(before.passages), len(after.passages)):
        hook = after.passages[number]
        if hook.restore_arguments:
            yield Widening(f"/passages/{number}", "originals go to servers")
        elif any(step.name not in PROTECTS for step in hook.results):
            yield Widening(f"/passages/{number}", "a step that may restore")


_JUDGED: Final = frozenset({"kinds", "names", "servers", "restore_arguments", "headers", "results"})


def _weakened(before: ToolHook, after: ToolHook) -> str | None:
    """Return how a passage protects less than the one that stood in its place, or None."""
    unjudged = ToolHook.model_fields.keys() - _JUDGED
    reasons = {
        "originals go to servers": after.restore_arguments and not before.restore_arguments,
        "originals go to more headers": not set(after.headers) <= set(before.headers),
        "a passage for something else": (before.kinds, before.names, before.servers)
        != (after.kinds, after.names, after.servers),
        "may allow more": any(getattr(before, name) != getattr(after, name) for name in unjudged),
    }
    first = next((reason for reason, holds in reasons.items() if holds), None)
    return first or _steps_weakened(before.results, after.results)


def _steps_weakened(before: Sequence[Step], after: Sequence[Step]) -> str | None:
    left = iter(after)
    for step in before:
        for other in left:
            if _same(step.model_dump(), other.model_dump()):
                break
            if other.name not in PROTECTS:
                return "a step that may restore"
        else:
            return "a step removed or changed"
    return None if all(other.name in PROTECTS for other in left) else "a step that may restore"


def _disclosure(before: Policy, after: Policy) -> Iterator[Widening]:
    old, new = before.disclosure, after.disclosure
    if old.default == "staged" and new.default != "staged":
        yield Widening("/disclosure/default", "tools need not be read before they are called")
    for key, stage in old.keys.items():
        if stage == "staged" and new.keys.get(key, new.default) != "staged":
            yield Widening(
                f"/disclosure/keys/{_escaped(key)}", "tools need not be read before they are called"
            )
    for key, stage in new.keys.items():
        if stage != "staged" and key not in old.keys and old.default == "staged":
            yield Widening(
                f"/disclosure/keys/{_escaped(key)}", "tools need not be read before they are called"
            )
    if _looser(("refuse", "caller", "off"), old.without_handle, new.without_handle):
        yield Widening("/disclosure/without_handle", "clients without a handle may do more")
    if new.caller_ttl_s > old.caller_ttl_s:
        yield Widening("/disclosure/caller_ttl_s", "a higher limit")


def _concerns(before: Policy, after: Policy) -> Iterator[Widening]:
    if before.concerns.apply_defaults and not after.concerns.apply_defaults:
        yield Widening("/concerns/apply_defaults", "lists show more")
    if after.concerns.expose and not before.concerns.expose:
        yield Widening("/concerns/expose", "lists show more")


def _untrusted(before: Policy, after: Policy) -> Iterator[Widening]:
    old, new = before.untrusted, after.untrusted
    if old.after == "allow":  # nothing was held back: the other members had no effect
        return
    if _looser(("refuse", "confirm", "allow"), old.after, new.after):
        yield Widening("/untrusted/after", "more is allowed after untrusted content")
    yield from _shorter("/untrusted/servers", old.servers, new.servers)
    if _looser(("untrusted", "trusted"), old.without_handle, new.without_handle):
        yield Widening("/untrusted/without_handle", "clients without a handle are trusted")


def _secrets(before: Policy, after: Policy) -> Iterator[Widening]:
    yield from _longer("/secrets/restorable_by", before.secrets.restorable_by, after.secrets.restorable_by)
    yield from _longer("/secrets/keys", before.secrets.keys, after.secrets.keys)


def _interceptors(before: Policy, after: Policy) -> Iterator[Widening]:
    for name, new in after.interceptors.items():
        old = before.interceptors.get(name)
        pointer = f"/interceptors/{_escaped(name)}"
        if new.mode == "audit" and (old is None or old.mode != "audit"):
            yield Widening(f"{pointer}/mode", "callers are told only to watch")
        if new.fail_open and (old is None or not old.fail_open):
            yield Widening(f"{pointer}/fail_open", "callers are told to let failures pass")
    for name, old in before.interceptors.items():
        if name not in after.interceptors and (old.mode == "active" or old.fail_open is False):
            yield Widening(f"/interceptors/{_escaped(name)}", "a recommendation removed")


def _agentic_groups(before: Policy, after: Policy) -> Iterator[Widening]:
    if after.agentic_groups and not before.agentic_groups:
        yield Widening("/agentic_groups", "sessions get tools to switch groups")


def _custody(before: Policy, after: Policy) -> Iterator[Widening]:
    if after.custody.delay_h < before.custody.delay_h:
        yield Widening("/custody/delay_h", "keys restore sooner without an approval")


def _retention(before: Policy, after: Policy) -> Iterator[Widening]:
    old, new = before.retention, after.retention
    if new.audit_days is not None and (old.audit_days is None or new.audit_days < old.audit_days):
        yield Widening("/retention/audit_days", "events are deleted sooner")
    if old.hold and not new.hold:
        yield Widening("/retention/hold", "a legal hold removed")
    if not set(old.held_scopes) <= set(new.held_scopes):
        yield Widening("/retention/held_scopes", "a legal hold removed")


def _gateway(before: Policy, after: Policy) -> Iterator[Widening]:
    for pointer, reason in gateway_widenings(before.gateway, after.gateway):
        yield Widening(pointer, reason)


def _identity(before: Policy, after: Policy) -> Iterator[Widening]:
    """Yield each rule behind the first that differs: what stood before it decides whether it counts."""
    old, new = before.identity.rules, after.identity.rules
    for number in range(len(new)):
        if new[: number + 1] != old[: number + 1]:
            yield Widening(f"/identity/rules/{number}", "tokens make callers")
    for pointer, reason in end_user_widenings(before.identity.end_users, after.identity.end_users):
        yield Widening(f"/identity/end_users{pointer}", reason)


def _nothing(_before: Policy, _after: Policy) -> Iterator[Widening]:
    yield from ()


RULES: Final[Mapping[str, Rule]] = {
    "allowed_middlewares": _allowed,
    "default_arguments": _defaults,
    "fixed_arguments": _fixed,
    "timeouts_ms": _timeouts,
    "audit_content": _audit_content,
    "audit_end_users": _audit_end_users,
    "scope_ttl_s": _scope_ttl,
    "limits": _limits,
    "grants": _grants,
    "passages": _passages,
    "disclosure": _disclosure,
    "concerns": _concerns,
    "untrusted": _untrusted,
    "secrets": _secrets,
    "tool_listing": _nothing,  # lists hold only what a caller may use anyway
    "custody": _custody,
    "retention": _retention,
    "interceptors": _interceptors,
    "gateway": _gateway,
    "identity": _identity,
    "agentic_groups": _agentic_groups,
}


def _longer(
    pointer: str, before: Collection[str] | None, after: Collection[str] | None
) -> Iterator[Widening]:
    """Yield whether a list allows more; None allows all."""
    if before is not None and not _within(after, before):
        yield Widening(pointer, "everything instead of a list" if after is None else "a longer list")


def _shorter(
    pointer: str, before: Collection[str] | None, after: Collection[str] | None
) -> Iterator[Widening]:
    """Yield whether a list holds back less; None holds back all."""
    if after is not None and not _within(before, after):
        yield Widening(pointer, "a list instead of everything" if before is None else "a shorter list")


def _within(inner: Collection[str] | None, outer: Collection[str] | None) -> bool:
    """Return whether ``inner`` is part of ``outer``; None is everything."""
    return outer is None or (inner is not None and set(inner) <= set(outer))


def _differences(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield middleware, argument and its two values where they differ; UNSET where there is none."""
    for name in {**before, **after}:
        old, new = before.get(name, {}), after.get(name, {})
        for argument in {**old, **new}:
            values = old.get(argument, UNSET), new.get(argument, UNSET)
            if UNSET in values or not _same(*values):
                yield name, argument, *values


def _may_show_more(middleware: str, argument: str, before: Any, after: Any) -> bool:
    return middleware not in _HARMLESS and not hides_as_much(middleware, argument, before, after)


def _changed(before: Any, after: Any) -> str:
    if after is UNSET:
        return "an argument removed"
    return "an argument that may hide less" if before is UNSET else "an argument with another value"


def _looser(order: tuple[str, ...], before: str, after: str) -> bool:
    return order.index(after) > order.index(before)


def _same(value: Any, other: Any) -> bool:
    """Compare JSON values; in Python, true would equal 1."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
