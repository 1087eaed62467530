"""What clients are told of tokens: which resource a path belongs to, and which scopes to ask for."""

import pytest

from app.core.access import Caller, Role
from app.core.errors import ForbiddenError, UnauthenticatedError
from app.core.identities import MappingRule, TrustedIssuer
from app.edge.facts import RequestFacts
from app.edge.protected_resources import WELL_KNOWN, ProtectedResources

OWN = (b"www-authenticate", b'Bearer realm="sluice"')
INVOKER = frozenset({Role.INVOKER})


def resources(
    *audiences: str, address: str | None = None, scopes: tuple[str, ...] = ()
) -> ProtectedResources:
    rules = (
        MappingRule({"scope": ("use", "see")}, "acme", frozenset({Role.INVOKER, Role.RESTORER})),
        MappingRule({"scope": "run"}, "acme", frozenset({Role.OPERATOR})),
        MappingRule({"scope": "use"}, "acme", INVOKER),
    )
    trusted = TrustedIssuer("https://login.example.com", frozenset(audiences), rules, scopes=scopes)
    return ProtectedResources([trusted], address)


@pytest.mark.parametrize(
    ("audiences", "address", "path", "resource"),
    [
        (["https://a.example/mcp"], None, "", "https://a.example/mcp"),
        (["https://a.example/mcp"], None, "/mcp", "https://a.example/mcp"),
        (["https://a.example/mcp"], None, "/mcp/groups/x", "https://a.example/mcp"),
        (["https://a.example/mcp"], None, "/mcpx", None),
        (["https://a.example/mcp"], None, "/api/v1", None),
        (["https://a.example"], None, "/api/v1/x", "https://a.example"),
        (["https://a.example/"], None, "/mcp", "https://a.example/"),
        (["https://a.example", "https://a.example/mcp"], None, "/mcp", "https://a.example/mcp"),
        (
            ["https://a.example.evil/mcp", "https://a.example/mcp"],
            "https://a.example",
            "/mcp",
            "https://a.example/mcp",
        ),
        (["api://sluice"], None, "/mcp", None),
        (["api://sluice"], "https://a.example", "/mcp", "https://a.example/mcp"),
        (["api://sluice"], "https://a.example", "/openai/v1/models", "https://a.example/openai"),
        (["api://sluice"], "https://a.example", "", "https://a.example"),
    ],
)
def test_a_path_belongs_to_the_audience_that_covers_it(
    audiences: list[str], address: str | None, path: str, resource: str | None
) -> None:
    document = resources(*audiences, address=address).metadata(path)
    assert (document and document["resource"]) == resource


def told(facts: RequestFacts, status: int, made: ProtectedResources, **sent: str) -> str | None:
    raw = [(name.encode(), value.encode()) for name, value in sent.items()]
    headers = [OWN] if status == 401 else []
    answer = dict(made.challenged(status, headers, facts, raw))
    value = answer.get(b"www-authenticate")
    return value.decode() if value is not None else None


def test_who_has_no_token_is_told_the_least_that_a_request_needs() -> None:
    made = resources("https://a.example/mcp", scopes=("base",))
    at = f'resource_metadata="https://a.example{WELL_KNOWN}'
    facts = RequestFacts("r", path="/mcp")
    assert told(facts, 401, made) == f'Bearer realm="sluice", scope="base use", {at}/mcp"'
    facts = RequestFacts("r", path="/api/v1/servers", required=[Role.OPERATOR])
    facts.fail(UnauthenticatedError("No."))
    expected = f'Bearer realm="sluice", error="invalid_token", scope="base run", {at}"'
    assert told(facts, 401, made, authorization="Bearer x") == expected


def test_who_has_too_little_is_told_all_scopes_of_what_was_there_and_what_is_needed() -> None:
    made = resources("https://a.example/mcp")
    facts = RequestFacts("r", path="/mcp")
    facts.fail(ForbiddenError("No.", details={"required": [Role.RESTORER]}))
    facts.caller = Caller("acme", "sub-1", INVOKER, issuer="https://login.example.com")
    challenge = told(facts, 403, made)
    assert challenge is not None and 'error="insufficient_scope", scope="use see"' in challenge
    for other in (
        Caller("acme", "0123abcd", INVOKER),  # a key is told nothing of scopes
        Caller("acme", "sub-1", INVOKER, issuer="https://other.example.com"),
    ):
        facts.caller = other
        assert told(facts, 403, made) is None
    facts.caller, facts.required = None, ()
    assert told(facts, 403, made) is None  # a foreign Origin is refused before anybody is asked


def test_a_challenge_of_a_provider_passes_as_it_came() -> None:
    theirs = [(b"www-authenticate", b'Bearer realm="provider"')]
    assert (
        resources("https://a.example").challenged(401, theirs, RequestFacts("r", path="/openai"), [])
        == theirs
    )
