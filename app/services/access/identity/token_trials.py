"""What would become of a token or of claims: a dry run in words, which lets nobody in and keeps nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

    ``missing`` are for each rule the names of the claims that do not fit, ``absent`` the groups of the mirror in which
    the owner is not. ``rule`` is the one that counts.
    """

    reason: TokenFault | Literal["ended", "elsewhere"] | None = None
    issuer: TrustedIssuer | None = None
    rules: tuple[MappingRule, ...] = ()
    missing: tuple[tuple[str, ...], ...] = ()
    absent: tuple[tuple[str, ...], ...] = ()
    rule: MappingRule | None = None

    def results(self) -> list[tuple[MappingRule, str]]:
        """Return each rule with what it says of the token."""
        return [
            (rule, fault_of(names, groups) or ("maps" if rule is self.rule else "matches"))
            for rule, names, groups in self._each()
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
                for rule, names, groups in self._each()
            ],
        }

    def within(self, tenant: str) -> "TokenTrial":
        """Return what of it concerns a tenant: rules of others are left out."""
        own = [each for each in self._each() if each[0].tenant == tenant]
        if self.issuer is not None and not own:
            # Whom this tenant does not trust is a stranger, whoever else trusts it.
            return TokenTrial("issuer")
        first = next((rule for rule, names, groups in self._each() if not names and not groups), None)
        decides = first is not None and first.tenant == tenant
        # Whom a rule of another tenant maps, no rule of this one does: the first counts.
        return replace(
            self,
            reason="elsewhere" if self.reason in (None, "ended") and not decides else self.reason,
            rules=tuple(rule for rule, _, _ in own),
            missing=tuple(names for _, names, _ in own),
            absent=tuple(groups for _, _, groups in own),
            rule=self.rule if decides else None,
        )

    def _each(self) -> Iterator[tuple[MappingRule, tuple[str, ...], tuple[str, ...]]]:
        return zip(self.rules, self.missing, self.absent, strict=True)


def fault_of(claims: Sequence[str], groups: Sequence[str]) -> str:
    """Return what a rule misses, in words: names of claims, and names of groups as the rule has them."""
    parts = [f"misses {', '.join(claims)}"] if claims else []
    parts += [f"not in {', '.join(groups)} of the mirror"] if groups else []
    return "; ".join(parts)
