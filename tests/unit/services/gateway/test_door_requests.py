"""What the policy says of the scope that a request through the gateway names."""

import pytest

from app.core.contracts.policy import Policy
from app.services.gateway.door_requests import scope_rules


@pytest.mark.parametrize(
    ("globs", "named", "shared"),
    [
        (["desk-*"], "desk-1", ("desk-1",)),
        (["desk-*"], "mine", ()),
        (["*"], None, ()),
        ([], "desk-1", ()),
    ],
)
def test_a_scope_is_shared_only_where_the_policy_says_so(
    globs: list[str], named: str | None, shared: tuple[str, ...]
) -> None:
    policy = Policy.model_validate({"gateway": {"shared_scopes": globs}})
    assert tuple(scope_rules(policy, named).shared) == shared
