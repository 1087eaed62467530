"""What would be done for an end user whom a service names: a dry run in words, without a name of anybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.core.access import Role
from app.services.access.credentials import Authenticator
from app.services.access.identity.end_users import EndUserBounds, Refusal, RuleTrial, SourceTrial


@dataclass(frozen=True, slots=True)
class EndUserTrial:
    """The rights of a service, and what the rules of each place say of its end user."""

    service: frozenset[Role]
    sources: tuple[SourceTrial, ...]
    bounds: EndUserBounds

    @property
    def refusal(self) -> Refusal | Literal["delegate"] | None:
        """Return why the service is refused, None where it is not; ``delegate``: it may name no end user."""
        return "delegate" if Role.DELEGATE not in self.service else self.bounds.refusal

    @property
    def roles(self) -> frozenset[Role]:
        """Return the roles that the service has for the end user."""
        return self.service if self.bounds.roles is None else self.service & self.bounds.roles

    def results(self) -> list[tuple[SourceTrial, int, RuleTrial, str]]:
        """Return each rule with its place, its number there and what it says of the end user."""
        return [
            (source, number, trial, _said(source, trial))
            for source in self.sources
            for number, trial in enumerate(source.trials, start=1)
        ]

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "taken": self.refusal is None,
            "refusal": self.refusal,
            "roles": sorted(self.roles),
            "grants": _sorted(self.bounds.grants),
            "rules": [
                {
                    "source": source.source,
                    "roles": _sorted(trial.rule.roles),
                    "grants": _sorted(trial.rule.grants),
                    "refuse": trial.rule.refuse,
                    "named": trial.named,
                    "missing_groups": list(trial.absent),
                    "counts": trial.rule is source.rule,
                }
                for source, _, trial, _ in self.results()
            ],
        }


async def tried_end_user(
    authenticator: Authenticator, tenant: str, service: frozenset[Role], user: str
) -> EndUserTrial:
    """Say what a service with these roles may do for an end user of its tenant; nothing is recorded."""
    sources = await authenticator.end_users.tried(authenticator.audit, tenant, user)
    return EndUserTrial(service, tuple(sources), EndUserBounds.of(tenant, sources))


def _said(source: SourceTrial, trial: RuleTrial) -> str:
    if not trial.named:
        return "names others"
    if trial.absent:
        return f"not in {', '.join(trial.absent)} of the mirror"
    return "counts" if trial.rule is source.rule else "matches"


def _sorted(names: frozenset[Any] | None) -> Sequence[str] | None:
    return None if names is None else sorted(names)
