"""What a name stands for: what is installed hides a pipeline of its name, and that a middleware of another server."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

import app.middlewares
from app.core.contracts.middleware import Middleware
from app.core.contracts.pipelines import Pipeline, PipelineStep
from app.core.contracts.registry import Registry
from app.core.errors import NotFoundError
from app.services.invoke.invocables import Invocables
from app.services.invoke.pipelines import PipelineVersion
from tests.fakes import engines

INSTALLED = Registry.discover(app.middlewares, engines()).middlewares
REMOTE = INSTALLED["tool_filter"]


class Pipelines:
    """The pipelines of the tenant ``acme``."""

    def __init__(self, *pipelines: Pipeline) -> None:
        moment = datetime(2025, 10, 4, tzinfo=UTC)
        self.held = {one.name: PipelineVersion(1, one, "active", "api", moment, "me") for one in pipelines}

    async def of(self, tenant: str) -> Mapping[str, PipelineVersion]:
        return self.held if tenant == "acme" else {}


class Remotes:
    """Middlewares of other servers; ``asked`` counts how often the servers were."""

    def __init__(self, *names: str) -> None:
        self.held = dict.fromkeys(names, REMOTE)
        self.asked = 0

    async def of(self) -> Mapping[str, Middleware[Any]]:
        self.asked += 1
        return self.held

    def last_listed(self) -> Mapping[str, Middleware[Any]]:
        return self.held


def pipeline(name: str, *steps: str) -> Pipeline:
    return Pipeline(name=name, steps=[PipelineStep(name=one) for one in steps or ("tool_filter",)])


def invocables(*pipelines: Pipeline, remotes: Remotes | None = None) -> Invocables:
    return Invocables(INSTALLED, Pipelines(*pipelines), remotes)  # type: ignore[arg-type]


async def test_what_is_installed_goes_before_a_pipeline_and_that_before_another_server_s() -> None:
    remotes = Remotes("a__one", "a__two", "pii_redaction")
    every = invocables(pipeline("a__one"), pipeline("pii_redaction"), pipeline("mine"), remotes=remotes)
    listed = await every.all_of("acme")
    assert listed["pii_redaction"] is INSTALLED["pii_redaction"]
    assert isinstance(listed["a__one"], PipelineVersion)
    assert listed["a__two"] is REMOTE
    for name in ("a__one", "mine", "a__two"):
        assert await every.of_tenant("acme", name) is listed[name]
    assert "pii_redaction" not in await every.pipelines_of("acme")
    for tenant, name in (("acme", "pii_redaction"), ("other", "mine")):
        with pytest.raises(NotFoundError):
            await every.of_tenant(tenant, name)


async def test_other_servers_are_asked_for_names_of_theirs_alone() -> None:
    remotes = Remotes("a__one")
    every = invocables(pipeline("mine"), remotes=remotes)
    with pytest.raises(NotFoundError) as refused:
        await every.of_tenant("acme", "unknown")
    assert refused.value.details["known"] == sorted([*INSTALLED, "mine"])
    await every.steps_of((await every.pipelines_of("acme"))["mine"])
    assert remotes.asked == 0
    with pytest.raises(NotFoundError):
        await every.of_tenant("acme", "a__unknown")
    assert remotes.asked == 1


async def test_steps_are_what_is_installed_and_what_other_servers_list_or_did() -> None:
    remotes = Remotes("a__one")
    every = invocables(pipeline("p", "pii_redaction", "a__one", "a__gone", "removed"), remotes=remotes)
    steps = await every.steps_of((await every.pipelines_of("acme"))["p"])
    assert set(steps) == {"pii_redaction", "a__one", "a__gone"}
    assert steps["a__one"] is REMOTE
    assert steps["a__gone"].name == "a__gone"
    assert every.known_step("a__one") is REMOTE
    assert every.known_step("pii_redaction") is INSTALLED["pii_redaction"]
    assert every.known_step("a__gone") is every.known_step("mine") is None


async def test_redactions_are_those_of_the_name_itself_or_of_its_steps() -> None:
    steps = [
        PipelineStep(name="secret_redaction", arguments={"mode": "mask"}),
        PipelineStep(name="tool_filter"),
        PipelineStep(name="a__redaction"),
    ]
    every = invocables(Pipeline(name="p", steps=steps), remotes=Remotes("a__redaction"))
    assert await every.redactions_of("acme", "p") == {"secret_redaction": {"mode": "mask"}}
    assert await every.redactions_of("acme", "pii_redaction") == {"pii_redaction": {}}
    for name in ("tool_filter", "unknown", "a__redaction"):
        assert await every.redactions_of("acme", name) == {}


async def test_without_pipelines_and_other_servers_there_is_what_is_installed() -> None:
    alone = Invocables(INSTALLED)
    assert await alone.all_of("acme") == INSTALLED
    with pytest.raises(NotFoundError):
        await alone.of_tenant("acme", "a__one")
