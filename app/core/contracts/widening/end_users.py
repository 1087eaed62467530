"""Which rights of services a change of the rules for end users widens."""

from collections.abc import Collection, Iterator

from app.core.contracts.identity_policy import EndUserBound, EndUserMirror, EndUserPolicy


def end_user_widenings(before: EndUserPolicy, after: EndUserPolicy) -> Iterator[tuple[str, str]]:
    """Yield a JSON pointer and a phrase for each right that services had not, for some end user, and have then.

    The first rule that matches counts, so what stands behind one that means others now may count for others, too.
    """
    old_mirror, new_mirror = before.provisioning, after.provisioning
    if old_mirror is not None and not _as_strict(old_mirror, new_mirror):
        yield "/provisioning", "services may act for more people"
    moved = _finds_others(before, after)
    for number, old in enumerate(before.rules):
        new = after.rules[number] if number < len(after.rules) else None
        moved = moved or new is None or (new.users, new.directory) != (old.users, old.directory)
        if moved:
            yield f"/rules/{number}", "other end users may be bounded"
        elif new is not None and not _bounds_as_much(old, new):
            yield f"/rules/{number}", "services may do more for end users"


def _as_strict(old: EndUserMirror, new: EndUserMirror | None) -> bool:
    return new is not None and new.attribute == old.attribute and new.required >= old.required


def _finds_others(before: EndUserPolicy, after: EndUserPolicy) -> bool:
    """Return whether groups hold other people than before, since these are found by something else."""
    names = [
        mirror.attribute if mirror is not None else None
        for mirror in (before.provisioning, after.provisioning)
    ]
    return names[0] != names[1] and any(rule.directory is not None for rule in before.rules)


def _bounds_as_much(old: EndUserBound, new: EndUserBound) -> bool:
    if old.refuse or new.refuse:
        return new.refuse
    return _within(new.roles, old.roles) and _within(new.grants, old.grants)


def _within(inner: Collection[str] | None, outer: Collection[str] | None) -> bool:
    """Return whether ``inner`` is part of ``outer``; None is everything."""
    return outer is None or (inner is not None and set(inner) <= set(outer))
