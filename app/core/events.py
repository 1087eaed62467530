"""What processes tell each other after a change is committed."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Changed:
    """Something of ``kind`` (keys, policy, tenant, ...) changed; ``tenant`` is None where all are concerned."""

    kind: str
    tenant: str | None = None
    name: str | None = None
