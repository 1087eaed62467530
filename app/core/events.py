"""Events that processes publish to each other after a committed change."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Changed:
    """Something of ``kind`` (keys, policy, tenant, ...) changed; ``tenant`` is None if it affects all tenants."""

    kind: str
    tenant: str | None = None
    name: str | None = None
