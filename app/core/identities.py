"""Identities that come with tokens: whom an issuer's claims make a caller, by rules without a default."""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Final, Literal

from app.core.access import Role
from app.core.globs import Glob

BY_SETTINGS_ALONE: Final = frozenset({Role.RESTORER, Role.OPERATOR, Role.KEY_CUSTODIAN})
"""Roles that take a second person for a key, or make who could grant them: no stored rule gives them."""
LONGEST_SUBJECT: Final = 256
MOST_AGENTS: Final = 8
SPACED_CLAIMS: Final = frozenset({"scope", "scp"})
"""Claims whose text is a list, separated by spaces (RFC 8693, section 4.2)."""
SCOPE_TEXT: Final = re.compile(r"[!#-\[\]-~]+")
"""What one scope looks like (RFC 6749, section 3.3), so that it can stand in a header."""
_GRANT: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}|sub-.*")

Expected = str | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MappingRule:
    """Makes whoever has these claims a caller of a tenant, with roles and limits like those of a key.

    ``when`` names claims: a member of the token, or with a leading slash a JSON pointer to a nested one. A text must be
    the claim or among its texts; of several texts all must be among them. ``groups`` are groups of the tenant's mirror,
    of all of which the person must be a member. ``grants`` are names that a policy may list
    where it lists ids of keys. ``networks`` are those that the caller may come from, none: from anywhere.
    """

    when: Mapping[str, Expected]
    tenant: str
    roles: frozenset[Role]
    grants: frozenset[str] = frozenset()
    networks: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def matches(self, claims: Mapping[str, Any], member_of: Collection[str] = ()) -> bool:
        """Return whether claims and groups are all that the rule asks for; a claim of a strange type has nothing."""
        return not self.missing(claims) and set(self.groups) <= set(member_of)

    def missing(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the claims that do not have what the rule asks for."""
        return tuple(
            name for name, expected in self.when.items() if not _fits(claim_at(claims, name), name, expected)
        )

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes that a token needs for this rule."""
        wanted = [self.when[name] for name in sorted(SPACED_CLAIMS & self.when.keys())]
        return tuple(scope for texts in wanted for scope in _texts(texts))


@dataclass(frozen=True, slots=True)
class Introspection:
    """How an issuer is asked whether a token counts (RFC 7662), with the credentials that it gave this service.

    ``uri`` None: the issuer's metadata says where. ``signed``: signed tokens are asked for, too, so that one that is
    revoked counts no more; ``opaque``: tokens that say nothing themselves are sent there. An answer counts for
    ``cache_s`` seconds.
    """

    client_id: str
    client_secret: str = field(repr=False)
    uri: str | None = None
    opaque: bool = True
    signed: bool = False
    cache_s: int = 30


@dataclass(frozen=True, slots=True)
class ConsoleClient:
    """As which client of an issuer people sign in to the console (OpenID Connect, authorization code with PKCE).

    ``redirect_uri`` is where the issuer leads them back to, as it is registered there. ``name`` is what they choose by.
    ``client_secret`` None: a public client.
    """

    client_id: str
    redirect_uri: str
    name: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ("openid",)


@dataclass(frozen=True, slots=True)
class Provisioning:
    """How the owner of a token is found among the people that the issuer mirrors here (SCIM).

    ``claim`` names them as ``attribute`` does. ``required``: who is not there, as an active person, stays out;
    otherwise only who is there and not active, or was removed.
    """

    claim: str = "sub"
    attribute: Literal["externalId", "userName"] = "externalId"
    required: bool = True

    @property
    def part(self) -> Literal["name", "external"]:
        """Return which part of an entry the claim is compared with."""
        return "external" if self.attribute == "externalId" else "name"


@dataclass(frozen=True, slots=True)
class EndUserRule:
    """Bounds what services may do for some end users: no more than these ``roles`` and ``grants``, None: as they may.

    ``users`` are patterns for the names that services give, which count in any case; ``groups`` those of the mirror.
    Whoever fits one of the patterns, where there are some, and is in all groups, is meant. ``refuse``: nothing is done
    for them.
    """

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: frozenset[Role] | None = None
    grants: frozenset[str] | None = None
    refuse: bool = False

    def names(self, user: str) -> bool:
        """Return whether a name fits one of the patterns; the groups are another question."""
        name = folded(user)
        return not self.users or any(Glob(folded(pattern)).matches(name) for pattern in self.users)


@dataclass(frozen=True, slots=True)
class EndUserRules:
    """Rules for the end users of a tenant, of which the first that matches counts, and where the mirror finds them.

    Without ``mirror`` it is not asked, and no rule may name groups.
    """

    rules: Sequence[EndUserRule] = ()
    mirror: Provisioning | None = None


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """An issuer of tokens, and what its tokens must be like to be taken here.

    ``audience``: a token names one of these. ``jwks_uri`` None: the issuer's metadata says where its keys are.
    ``max_token_age_s`` bounds the time since a token was issued, ``leeway_s`` the difference of clocks. ``scopes``
    are those that clients are told to ask for beside the ones in the rules. ``tenants`` are those whose policies may
    map its tokens to themselves, too, in this order and after the ``rules``.
    """

    issuer: str
    audience: frozenset[str]
    rules: tuple[MappingRule, ...]
    jwks_uri: str | None = None
    algorithms: frozenset[str] = frozenset({"RS256", "ES256", "EdDSA"})
    max_token_age_s: int = 600
    leeway_s: int = 30
    scopes: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    introspection: Introspection | None = None
    console: ConsoleClient | None = None
    provisioning: Provisioning | None = None

    def scopes_for(self, roles: Iterable[Role]) -> tuple[str, ...]:
        """Return all scopes that a token needs for the rule that gives all of ``roles`` and the fewest others."""
        wanted = frozenset(roles)
        giving = [rule for rule in self.rules if wanted <= rule.roles]
        # Rules that give more come first, but nobody is to ask for more than they need: they can step up.
        least = min(giving, key=lambda rule: len(rule.roles), default=None)
        return tuple(dict.fromkeys((*self.scopes, *(least.scopes if least is not None else ()))))


def folded(name: str) -> str:
    """Return a name of a person in the form in which two spellings of it are equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def issuer_id(issuer: str) -> str:
    """Return what stands for an issuer in addresses: 16 hexadecimal digits that follow from its name."""
    return hashlib.sha256(issuer.encode()).hexdigest()[:16]


def checked_network(text: str) -> str:
    """Return the text of a network, or raise ValueError."""
    ip_network(text)
    return text


def checked_grant(name: str) -> str:
    """Return a grant, or raise ValueError for one that a policy could not tell from the id of a key."""
    if not _GRANT.fullmatch(name) or _KEY_ID.fullmatch(name):
        raise ValueError(
            "a grant is a name of lower-case letters, digits, dots, hyphens and underscores, unlike the id of a key"
        )
    return name


def checked_conditions(when: Mapping[str, Any]) -> dict[str, Expected]:
    """Return what a rule asks of claims, or raise ValueError for scopes that could not stand in a challenge."""
    conditions = {name: tuple(value) if isinstance(value, list) else value for name, value in when.items()}
    for name in SPACED_CLAIMS & conditions.keys():
        if not all(SCOPE_TEXT.fullmatch(text) for text in _texts(conditions[name])):
            raise ValueError("a scope has no space, quote or backslash")
    return conditions


def agents_of(claims: Mapping[str, Any], issuer: str) -> tuple[tuple[str, str], ...]:
    """Return issuer and subject of each agent that acts for a token's subject (RFC 8693, 4.1), the nearest first.

    Raises ValueError where the claim ``act`` is no chain of subjects, or one of too many.
    """
    agents: list[tuple[str, str]] = []
    actor = claims.get("act")
    while actor is not None:
        subject = actor.get("sub") if isinstance(actor, Mapping) else None
        named_issuer = actor.get("iss", issuer) if isinstance(actor, Mapping) else None
        if not isinstance(subject, str) or not isinstance(named_issuer, str) or len(agents) >= MOST_AGENTS:
            raise ValueError("act is no chain of subjects")
        agents.append((named_issuer, subject))
        actor = actor.get("act")
    return tuple(agents)


def claim_at(claims: Mapping[str, Any], name: str) -> Any:
    """Return the claim of that name, or at that JSON pointer where it begins with a slash; None without one."""
    if not name.startswith("/"):
        return claims.get(name)
    value: Any = claims
    for step in name[1:].split("/"):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step.replace("~1", "/").replace("~0", "~"))
    return value


def _fits(claim: Any, name: str, expected: Expected) -> bool:
    if isinstance(expected, bool):
        return claim is expected
    if isinstance(claim, str):
        present = frozenset(claim.split()) if name in SPACED_CLAIMS else frozenset({claim})
    elif isinstance(claim, list):
        present = frozenset(text for text in claim if isinstance(text, str))
    else:
        return False
    wanted = _texts(expected)
    # Of nothing, everything is there: whoever asks for nothing has a list that became empty by mistake.
    return bool(wanted) and present.issuperset(wanted)


def _texts(expected: Expected) -> tuple[str, ...]:
    if isinstance(expected, bool):
        return ()
    return (expected,) if isinstance(expected, str) else expected
