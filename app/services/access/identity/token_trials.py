"""What would become of a token: a dry run in words, without a value of the token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.core.identities import MappingRule, TrustedIssuer
from app.core.tokens import TokenFault


@dataclass(frozen=True, slots=True)
class TokenTrial:
    """What would become of a token, without its values: why it is refused, else which of its issuer's rules maps it.

    ``missing`` are for each rule the names of the claims that do not fit, ``absent`` the groups of the mirror in which
    the owner is not. ``rule`` is the one that counts.
    """

    reason: TokenFault | Literal["ended"] | None = None
    issuer: TrustedIssuer | None = None
    rules: tuple[MappingRule, ...] = ()
    missing: tuple[tuple[str, ...], ...] = ()
    absent: tuple[tuple[str, ...], ...] = ()
    rule: MappingRule | None = None

    def results(self) -> list[tuple[MappingRule, str]]:
        """Return each rule with what it says of the token."""
        return [
            (rule, _fault(names, groups) or ("maps" if rule is self.rule else "matches"))
            for rule, names, groups in zip(self.rules, self.missing, self.absent, strict=True)
        ]

    def described(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "taken": self.rule is not None,
            "reason": self.reason,
            "issuer": self.issuer.issuer if self.issuer is not None else None,
            "rules": [
                {
                    "tenant": rule.tenant,
                    "roles": sorted(rule.roles),
                    "grants": sorted(rule.grants),
                    "cidrs": list(rule.networks),
                    "missing": list(names),
                    "missing_groups": list(groups),
                    "maps": rule is self.rule,
                }
                for rule, names, groups in zip(self.rules, self.missing, self.absent, strict=True)
            ],
        }


def _fault(claims: Sequence[str], groups: Sequence[str]) -> str:
    """Return what a rule misses, in words: names of claims, and names of groups as the rule has them."""
    parts = [f"misses {', '.join(claims)}"] if claims else []
    parts += [f"not in {', '.join(groups)} of the mirror"] if groups else []
    return "; ".join(parts)
