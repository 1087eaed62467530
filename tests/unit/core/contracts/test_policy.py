"""What a tenant's policy says of one caller, one result, one list."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.access import Caller, Role
from app.core.content.handles import Handle
from app.core.contracts.policy import Limits, SecretPolicy, ToolHook, ToolListing, UntrustedPolicy
from app.core.contracts.policy_steps import Step

PLAIN, SECRET = Handle("PERSON", 1), Handle("SECRET_AWS", 1)


def caller_of(*roles: Role, key: str = "0000000a") -> Caller:
    return Caller("acme", key, frozenset(roles))


@pytest.mark.parametrize(
    ("policy", "caller", "gets_secrets"),
    [
        ({}, caller_of(Role.RESTORER), True),
        ({"restorable_by": []}, caller_of(Role.RESTORER), False),
        ({"restorable_by": ["restorer", "auditor"]}, caller_of(Role.RESTORER), True),
        ({"restorable_by": ["restorer", "auditor"]}, caller_of(Role.AUDITOR, Role.INVOKER), True),
        ({"restorable_by": ["auditor"]}, caller_of(Role.RESTORER), False),
        ({"keys": []}, caller_of(Role.RESTORER), False),
        ({"keys": ["0000000b", "0000000a"]}, caller_of(Role.RESTORER), True),
        ({"keys": ["0000000b"]}, caller_of(Role.RESTORER), False),
        ({"keys": ["0000000a"], "restorable_by": ["auditor"]}, caller_of(Role.RESTORER), False),
        ({"keys": ["0000000b"], "restorable_by": ["restorer"]}, caller_of(Role.RESTORER), False),
        ({"keys": ["0000000a"], "restorable_by": ["restorer"]}, caller_of(Role.RESTORER), True),
    ],
)
def test_secrets_are_for_any_of_the_roles_with_any_of_the_keys_and_the_rest_for_all(
    policy: dict[str, Any], caller: Caller, gets_secrets: bool
) -> None:
    found = SecretPolicy(**policy).restorable([PLAIN, SECRET], caller)
    assert found == ({PLAIN, SECRET} if gets_secrets else {PLAIN})


@pytest.mark.parametrize(
    ("policy", "server", "suspected", "holds"),
    [
        ({}, "web", True, False),
        ({"after": "confirm"}, "web", False, True),
        ({"after": "refuse", "servers": ["web"]}, "web", False, True),
        ({"after": "refuse", "servers": ["web"]}, "crm", False, False),
        ({"after": "refuse", "servers": ["web"]}, "crm", True, True),
        ({"after": "refuse", "servers": []}, "crm", False, False),
        ({"after": "refuse", "servers": []}, "crm", True, True),
    ],
)
def test_a_result_is_not_trusted_for_its_server_or_for_what_is_suspected(
    policy: dict[str, Any], server: str, suspected: bool, holds: bool
) -> None:
    assert UntrustedPolicy(**policy).distrusts(server, suspected=suspected) is holds


def test_a_passage_that_restores_arguments_redacts_results_with_any_of_its_steps() -> None:
    redacting = Step(name="pii_redaction")
    ToolHook(restore_arguments=True, results=[Step(name="tool_filter"), redacting])
    ToolHook(restore_arguments=False, results=[Step(name="tool_filter")])
    for results in ([], [Step(name="secret_redaction")]):
        with pytest.raises(ValidationError):
            ToolHook(restore_arguments=True, results=results)


@pytest.mark.parametrize(
    ("model", "fits", "exceeds"),
    [
        (Limits, {"requests_per_second": 0.001}, {"requests_per_second": 0.0009}),
        (Limits, {"burst": 1}, {"burst": 0}),
        (Limits, {"in_flight": 1_000_000}, {"in_flight": 1_000_001}),
        (Limits, {"deadline_ms": 3_600_000}, {"deadline_ms": 3_600_001}),
        (Limits, {"max_depth": 1000}, {"max_depth": 1001}),
        (ToolListing, {"max_tools": 1}, {"max_tools": 0}),
        (ToolListing, {"min_score": 1}, {"min_score": 1.01}),
        (ToolListing, {"pinned": ["a" * 2048]}, {"pinned": ["a" * 2049]}),
    ],
)
def test_the_bound_itself_fits_and_one_more_does_not(model: Any, fits: Any, exceeds: Any) -> None:
    model(**fits)
    with pytest.raises(ValidationError):
        model(**exceeds)
