"""What descriptors lead an invoker to: order, modes and failure rules, by golden fixtures and by an invoker."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.core.contracts.policy import Policy
from tests.protocol.interceptor_invoker import selected, send
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import REVISIONS, client
from tests.protocol.requirements import covers
from tests.protocol.test_interceptors import Crashes, Slow

OPERATOR = Caller(DEFAULT_TENANT, "00000000", frozenset({Role.OPERATOR}))
FIXTURES = sorted((Path(__file__).parent / "interceptors" / "descriptors").glob("*.json"))
ROUTING = {"mode", "failOpen", "priorityHint"}
TEXT = {"context": [{"type": "text", "text": "Project Bluebird"}]}
DENIES = {"content_moderation": {"policies": ["x"], "customPolicies": [{"name": "x", "terms": ["bluebird"]}]}}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[str, FastAPI]]:
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, app):
        yield url, app


async def put(app: FastAPI, interceptors: dict[str, Any]) -> None:
    await app.state.services.policies.put(
        OPERATOR, None, Policy.model_validate({"interceptors": interceptors})
    )


@covers("IC-POLICY", "IC-LIST")
async def test_every_golden_descriptor_holds_on_both_revisions(served: tuple[str, FastAPI]) -> None:
    url, app = served
    for path in FIXTURES:
        fixture = json.loads(path.read_text())
        await put(app, fixture["policy"])
        for revision in REVISIONS:
            async with client(url, revision, str(KEY)) as wire:
                listed = (await wire.call("interceptors/list")).result["interceptors"]
            if "routing" in fixture:
                shown = {one["name"]: {k: one[k] for k in one if k in ROUTING} for one in listed}
                assert {name: shown[name] for name in fixture["names"]} == fixture["routing"], path.stem
                continue
            chosen = selected(listed, fixture["event"], fixture["phase"])
            assert [one["name"] for one in chosen] == fixture["mutations"] + fixture["validations"], path.stem


@covers("IC-POLICY")
@pytest.mark.parametrize(
    ("policy", "blocked", "prefixed"),
    [
        ({}, "crashes", False),
        ({"crashes": {"fail_open": True}}, "slow", False),
        ({"crashes": {"fail_open": True}, "slow": {"mode": "audit"}}, "content_moderation", False),
        (
            {
                "crashes": {"mode": "audit"},
                "slow": {"fail_open": True},
                "content_moderation": {"mode": "audit"},
            },
            None,
            True,
        ),
        (
            {
                **{name: {"mode": "audit"} for name in ("crashes", "slow", "content_moderation")},
                "timestamp_injector": {"mode": "audit"},
            },
            None,
            False,
        ),
    ],
)
async def test_an_invoker_blocks_and_releases_by_what_a_tenant_recommends(
    served: tuple[str, FastAPI], policy: dict[str, Any], blocked: str | None, *, prefixed: bool
) -> None:
    url, app = served
    app.state.services.registry.middlewares.update(slow=Slow(None), crashes=Crashes(None))
    await put(app, policy)
    await limit(app, policy)
    names = {"crashes", "slow", "timestamp_injector", "content_moderation"}
    for revision in REVISIONS:
        async with client(url, revision, str(KEY)) as wire:
            released = await send(wire, names, "context/transform", TEXT, DENIES)
        assert released.blocked == blocked
        changed = released.payload != TEXT
        assert changed is prefixed, "a payload that is blocked, or only observed, is the one that was given"
        assert released.asked[:1] == ["crashes"]


async def limit(app: FastAPI, policy: dict[str, Any]) -> None:
    """Let the slow one end by the tenant's own time limit."""
    document = {"interceptors": policy, "timeouts_ms": {"slow": 50}}
    await app.state.services.policies.put(OPERATOR, None, Policy.model_validate(document))
