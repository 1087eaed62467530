"""What would become of a token or of claims: a dry run, which lets nobody in and keeps nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from app.core.identities import MappingRule, TrustedIssuer
from app.core.tokens import TokenFault

TOKEN_FAULTS: Final[Mapping[str, str]] = {
    "token": "It is malformed, too long, no access token, or lacks a claim: sub, aud, iat and exp must be there.",
    "inactive": "Its issuer says that it counts no more, or does not know it.",
    "issuer": "Its issuer is not among those that are trusted, letter by letter.",
    "signature": "No key of its issuer signed it with an algorithm that is taken.",
    "audience": "Its aud names none of the issuer's audiences.",
    "token_expired": "It is over (exp).",
    "token_early": "It is not valid yet (nbf, iat); compare the clocks.",
    "token_old": "It was issued longer ago (iat) than the issuer's maxTokenAge allows.",
}
"""Why a token is not taken, whatever the rules say, for people."""


@dataclass(frozen=True, slots=True)
class TokenTrial:
    """What would become of a token, without its values: why it is refused, else which of its issuer's rules maps it.

    ``missing`` are for each rule the names of the claims that do not fit. ``rule`` is the one that counts.
    """

    reason: TokenFault | Literal["ended", "elsewhere"] | None = None
    issuer: TrustedIssuer | None = None
    rules: tuple[MappingRule, ...] = ()
    missing: tuple[tuple[str, ...], ...] = ()
    rule: MappingRule | None = None

    def results(self) -> list[tuple[MappingRule, str]]:
        """Return each rule with what it says of the token."""
        return [
            (rule, f"misses {', '.join(names)}" if names else "maps" if rule is self.rule else "matches")
            for rule, names in zip(self.rules, self.missing, strict=True)
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
                    "maps": rule is self.rule,
                }
                for (rule, _), names in zip(self.results(), self.missing, strict=True)
            ],
        }

    def within(self, tenant: str) -> "TokenTrial":
        """Return what of it concerns a tenant: rules of others are left out."""
        shown = [pair for pair in zip(self.rules, self.missing, strict=True) if pair[0].tenant == tenant]
        rule = self.rule if self.rule is not None and self.rule.tenant == tenant else None
        # Whom a rule of another tenant maps, no rule of this one does: the first counts.
        reason = "elsewhere" if self.reason in (None, "ended") and not self._decides(tenant) else self.reason
        return TokenTrial(
            reason, self.issuer, tuple(rule for rule, _ in shown), tuple(names for _, names in shown), rule
        )

    def _decides(self, tenant: str) -> bool:
        first = next((r for r, names in zip(self.rules, self.missing, strict=True) if not names), None)
        return first is not None and first.tenant == tenant
