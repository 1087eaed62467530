"""Pipelines: one call, steps in order, additions redacted, handles given once, one record, and every failure rule."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml

import app.middlewares
from app.core.access import Role
from app.core.content import Context
from app.core.engines import EngineReport
from app.core.errors import BlockedByPolicyError, UpstreamUnavailableError
from app.core.events import Changed
from app.core.middleware import Arguments, Middleware, Outcome
from app.core.pipelines import PIPELINES_CHANGED
from app.core.registry import Registry
from app.services.caching import ShortMemory
from app.store.changes import Changes
from app.store.database import Database
from tests.fakes import engines
from tests.integration.rest_app import Rest, open_rest

PATH = "/api/v1/pipelines"
PENDING = SimpleNamespace(version=0)
TEXT = "I am Jane Smith, 123-45-6789. Not [PERSON_1]."


class TellArguments(Arguments):
    """What is put in front; ``fail`` is how the step fails."""

    text: str = "Found: John Doe and Jane Smith say [PERSON_1].\n\n"
    fail: str = ""


class Tell(Middleware[TellArguments]):
    """Puts a text in front, as retrieval does, or fails."""

    name = "tell"
    title = "Tell"
    description = "Puts a text in front"
    phase = "outbound"
    arguments = TellArguments
    seen: ClassVar[list[Any]] = []

    async def apply(self, context: Context, arguments: TellArguments) -> Outcome:
        self.seen.append(context.items)
        if arguments.fail == "hang":
            await asyncio.Event().wait()
        if arguments.fail == "crash":
            raise RuntimeError(f"about {context.items}")
        if arguments.fail == "down":
            raise UpstreamUnavailableError("The retriever does not answer.")
        if arguments.fail == "blocked":
            raise BlockedByPolicyError("No.")
        metadata = {"sources": ["John Doe's file"], "quoted": "[PERSON_1]"}
        return Outcome(
            context.prefixed(arguments.text), metadata, engine=EngineReport("told", "1", degraded=True)
        )


@pytest.fixture
async def rest(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    discovered = Registry.discover(app.middlewares, engines())
    more = Registry({**discovered.middlewares, "tell": Tell(engines())})
    monkeypatch.setattr(Registry, "discover", lambda *_: more)
    Tell.seen.clear()
    async with open_rest(database_url) as opened:
        yield opened


async def put(
    rest: Rest, *steps: Any, name: str = "to_model", code: int = 200, **more: Any
) -> dict[str, Any]:
    body = {"name": name, "steps": [one if isinstance(one, dict) else {"name": one} for one in steps], **more}
    answer = await rest.call("PUT", f"{PATH}/{name}", body, roles=[Role.OPERATOR])
    assert answer.status_code == code, answer.text
    return dict(answer.json())


async def events(rest: Rest, action: str = "middleware.invoke") -> list[dict[str, Any]]:
    answer = await rest.call("GET", f"/api/v1/audit/events?action={action}", roles=["auditor"])
    return list(answer.json()["items"])


async def run(rest: Rest, context: Any, arguments: Any = None, *roles: Role) -> dict[str, Any]:
    answer = await rest.invoke("to_model", context, arguments, roles=roles or [Role.INVOKER])
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_what_later_steps_add_is_redacted_too_and_all_of_it_comes_back(rest: Rest) -> None:
    await put(rest, "pii_redaction", "tell", "timestamp_injector")
    made = await run(rest, [TEXT], {"scope": "s"})
    (text,) = made["content"]
    assert text == (
        "[Current time: Saturday, October 4, 2025, 3:42 PM UTC]\n\n"
        "Found: [PERSON_2] and [PERSON_1] say [LITERAL_1].\n\n"
        "I am [PERSON_1], [SSN_1]. Not [LITERAL_1]."
    )
    metadata = made["metadata"]
    assert [one["name"] for one in metadata["steps"]] == ["pii_redaction", "tell", "timestamp_injector"]
    assert {one["outcome"] for one in metadata["steps"]} == {"ok"}
    assert (metadata["pipeline"], metadata["version"], metadata["scope"]) == ("to_model", 1, "s")
    assert metadata["redactions"] == [
        {"handle": "PERSON_1", "type": "person"},
        {"handle": "SSN_1", "type": "ssn"},
        {"handle": "LITERAL_1", "type": "literal"},
        {"handle": "PERSON_2", "type": "person"},
    ]
    assert metadata["degraded"] is True
    assert metadata["steps"][1]["metadata"]["engine"]["name"] == "told"
    back = await rest.invoke("pii_restoration", made["content"], {"scope": "s"}, roles=[Role.RESTORER])
    assert back.json()["content"] == [
        (
            "[Current time: Saturday, October 4, 2025, 3:42 PM UTC]\n\n"
            f"Found: John Doe and Jane Smith say [PERSON_1].\n\n{TEXT}"
        )
    ]


async def test_without_a_redaction_step_nothing_is_redacted(rest: Rest) -> None:
    await put(rest, "tell")
    made = await run(rest, [TEXT])
    assert made["content"][0].startswith("Found: John Doe") and "redactions" not in made["metadata"]


async def test_later_steps_see_the_text_as_the_earlier_ones_left_it(rest: Rest) -> None:
    await put(rest, "pii_redaction", "tell")
    await run(rest, [TEXT])
    assert Tell.seen == [["I am [PERSON_1], [SSN_1]. Not [LITERAL_1]."]]


async def test_handles_of_a_scope_go_on_and_the_same_prefix_gives_the_same(rest: Rest) -> None:
    await put(rest, "pii_redaction", "tell")
    await rest.invoke("pii_redaction", ["John Doe"], {"scope": "s"})
    first = await run(rest, [{"role": "user", "content": "Jane Smith"}], {"scope": "s"})
    turns = [{"role": "user", "content": "Jane Smith"}, {"role": "user", "content": "and José"}]
    second = await run(rest, turns, {"scope": "s"})
    assert first["content"][0]["content"].endswith("\n\n[PERSON_2]")
    assert "Found: [PERSON_1] and [PERSON_2]" in first["content"][0]["content"]
    assert second["content"][0] == {"role": "user", "content": "[PERSON_2]"}
    assert second["content"][1]["content"].endswith("and [PERSON_3]")
    assert second["metadata"]["quoted"] == "[PERSON_2]", "metadata names handles as the answer does"


async def test_one_record_lists_the_steps_and_holds_nothing_else(rest: Rest) -> None:
    await put(
        rest, "pii_redaction", {"name": "tell", "on_error": "skip", "arguments": {"fail": "crash"}}, "tell"
    )
    await run(rest, [TEXT], {"scope": "s"})
    (event,) = await events(rest)
    assert (event["middleware"], event["outcome"], event["blocks"]) == ("to_model", "ok", 1)
    details = event["details"]
    assert {key: details[key] for key in details if not key.endswith("_us")} == {
        "pipeline_version": 1,
        "mapping_returned": False,
        "step_1": "pii_redaction",
        "step_1_outcome": "ok",
        "step_2": "tell",
        "step_2_outcome": "internal_error",
        "step_3": "tell",
        "step_3_outcome": "ok",
        "step_3_degraded": True,
    }
    assert event["counts"] == {"PERSON": 3, "SSN": 1}
    assert "Jane" not in str(event) and "John" not in str(event)


@pytest.mark.parametrize(
    ("fail", "outcome"),
    [("crash", "internal_error"), ("down", "upstream_unavailable"), ("hang", "deadline_exceeded")],
)
async def test_a_step_that_fails_fails_the_call_or_is_skipped(rest: Rest, fail: str, outcome: str) -> None:
    step = {"name": "tell", "arguments": {"fail": fail}, "timeout_ms": 60}
    await put(rest, "pii_redaction", step)
    failed = await rest.invoke("to_model", [TEXT], {"scope": "s"}, roles=[Role.INVOKER])
    assert failed.json()["code"] == outcome
    assert "Jane" not in failed.text
    known = await rest.invoke("pii_restoration", ["[PERSON_1]"], {"scope": "s"}, roles=[Role.RESTORER])
    assert known.json()["content"] == ["[PERSON_1]"], "nothing was stored"

    await put(rest, "pii_redaction", {**step, "on_error": "skip"})
    made = await run(rest, [TEXT], {"scope": "s"})
    assert made["content"] == ["I am [PERSON_1], [SSN_1]. Not [LITERAL_1]."]
    skipped = made["metadata"]["steps"][1]
    assert (skipped["outcome"], skipped["error"]) == ("skipped", outcome)


async def test_refusals_are_never_skipped(rest: Rest) -> None:
    await put(rest, {"name": "tell", "arguments": {"fail": "blocked"}, "on_error": "skip"})
    refused = await rest.invoke("to_model", [TEXT], roles=[Role.INVOKER])
    assert refused.json()["code"] == "blocked_by_policy"
    await put(rest, {"name": "pii_redaction", "arguments": {"mode": "block"}}, "tell")
    refused = await rest.invoke("to_model", [TEXT], roles=[Role.INVOKER])
    assert refused.json()["code"] == "blocked_by_policy"
    added = await rest.invoke("to_model", ["nobody"], roles=[Role.INVOKER])
    assert added.json()["code"] == "blocked_by_policy", "what a step adds is refused like what was given"


async def test_the_request_s_own_time_limit_is_not_a_step_s(rest: Rest) -> None:
    await put(rest, {"name": "tell", "arguments": {"fail": "hang"}, "on_error": "skip"})
    await rest.call("PUT", "/api/v1/policies", {"timeouts_ms": {"to_model": 50}}, roles=["operator"])
    late = await rest.invoke("to_model", [TEXT], roles=[Role.INVOKER])
    assert late.json()["code"] == "deadline_exceeded"


@pytest.mark.parametrize(
    ("steps", "code", "pointer"),
    [
        ([{"name": "pii_redaction", "on_error": "skip"}], 422, "/steps/0/on_error"),
        (["nothing"], 422, "/steps/0/name"),
        (["to_model"], 422, "/steps/0/name"),
        ([{"name": "tell", "arguments": {"colour": 1}}], 422, "/steps/0/arguments/colour"),
        (["pii_redaction", "pii_restoration"], 422, "/steps/1/name"),
        ([], 422, "/steps"),
    ],
)
async def test_what_could_not_run_is_refused_when_it_is_saved(
    rest: Rest, steps: list[Any], code: int, pointer: str
) -> None:
    await put(rest, "tell")
    assert (await put(rest, *steps, code=code))["pointer"] == pointer
    assert (await put(rest, "tell", name="pii_redaction", code=409))["pointer"] == "/name"


async def test_callers_choose_what_the_pipeline_and_the_policy_leave_open(rest: Rest) -> None:
    await put(rest, {"name": "pii_redaction", "arguments": {"exclude": ["ssn"]}}, "tell")
    listed = await rest.call("GET", "/api/v1/middleware", roles=["invoker"])
    (mine,) = [one for one in listed.json()["middleware"] if one["name"] == "to_model"]
    assert set(mine["inputSchema"]["properties"]) == {"scope", "strict", "dryRun", "pii_redaction", "tell"}
    assert "exclude" not in mine["inputSchema"]["properties"]["pii_redaction"]["properties"]
    made = await run(rest, ["Jane Smith 123-45-6789"], {"tell": {"text": "Look: "}})
    assert made["content"] == ["Look: [PERSON_1] 123-45-6789"]

    async def refused(arguments: Any) -> tuple[str, str]:
        answer = await rest.invoke("to_model", ["x"], arguments, roles=[Role.INVOKER])
        return answer.json()["code"], answer.json()["pointer"]

    at = "/arguments/pii_redaction"
    assert await refused({"pii_redaction": {"exclude": []}}) == ("blocked_by_policy", f"{at}/exclude")
    assert await refused({"pii_redaction": {"colour": 1}}) == ("invalid_arguments", at)
    assert await refused({"pii_redaction": 1}) == ("invalid_arguments", at)
    assert await refused({"timestamp_injector": {}}) == ("invalid_arguments", "/arguments")
    assert await refused({"scope": "a b"}) == ("invalid_arguments", "/arguments/scope")
    fixed = {"fixed_arguments": {"tell": {"text": "Fixed: "}, "pii_redaction": {"return_mapping": False}}}
    await rest.call("PUT", "/api/v1/policies", fixed, roles=["operator"])
    assert (await run(rest, ["x"]))["content"] == ["Fixed: x"]
    assert await refused({"tell": {"text": "Mine"}}) == ("blocked_by_policy", "/arguments/tell/text")
    assert await refused({"pii_redaction": {"returnMapping": True}}) == (
        *("blocked_by_policy", f"{at}/return_mapping"),
    )


async def test_the_policy_allows_a_pipeline_by_its_own_name(rest: Rest) -> None:
    await put(rest, "pii_redaction")
    policy = {"allowed_middlewares": ["to_model"]}
    assert (await rest.call("PUT", "/api/v1/policies", policy, roles=["operator"])).status_code == 200
    assert (await run(rest, ["Jane Smith"]))["content"] == ["[PERSON_1]"]
    step = await rest.invoke("pii_redaction", ["x"], roles=[Role.INVOKER])
    assert step.json()["code"] == "blocked_by_policy"
    policy = {"allowed_middlewares": ["pii_redaction"]}
    await rest.call("PUT", "/api/v1/policies", policy, roles=["operator"])
    refused = await rest.invoke("to_model", ["x"], roles=[Role.INVOKER])
    assert refused.json()["code"] == "blocked_by_policy"
    unknown = {"allowed_middlewares": ["to_nobody"]}
    assert (await rest.call("PUT", "/api/v1/policies", unknown, roles=["operator"])).status_code == 422


async def test_a_restoring_step_reads_the_vault_and_needs_the_restorer(rest: Rest) -> None:
    await rest.invoke("pii_redaction", ["Jane Smith"], {"scope": "s"})
    await put(rest, "pii_restoration", "tell", phase="inbound")
    refused = await rest.invoke("to_model", ["Dear [PERSON_1]"], {"scope": "s"}, roles=[Role.INVOKER])
    assert refused.json()["code"] == "forbidden" and "Jane" not in refused.text
    made = await rest.invoke(
        *("to_model", ["Dear [PERSON_1] [PERSON_7]"], {"scope": "s", "tell": {"text": ">"}}),
        roles=[Role.RESTORER, Role.INVOKER],
    )
    assert made.json()["content"] == [">Dear Jane Smith [PERSON_7]"]
    assert made.json()["metadata"]["unresolved"] == 1
    newest = (await events(rest))[0]
    assert newest["counts"]["restored"] == 1 and newest["scope_ref"] is not None


async def test_a_restored_text_is_redacted_anew_in_another_scope(rest: Rest) -> None:
    await rest.invoke("pii_redaction", ["José Jane Smith"], {"scope": "s"})
    await put(
        rest,
        {"name": "pii_restoration", "arguments": {"scope": "s"}},
        {"name": "pii_redaction"},
    )
    answer = await rest.invoke("to_model", ["[PERSON_2]"], roles=[Role.INVOKER, Role.RESTORER])
    assert answer.json()["content"] == ["[PERSON_1]"]
    assert answer.json()["metadata"]["scope"] != "s"


async def test_the_mapping_comes_only_to_restorers(rest: Rest) -> None:
    await put(rest, "pii_redaction", "tell")
    arguments = {"pii_redaction": {"returnMapping": True}, "tell": {"text": "José: "}}
    refused = await rest.invoke("to_model", ["Jane Smith"], arguments, roles=[Role.INVOKER])
    assert refused.json()["code"] == "forbidden"
    made = await run(rest, ["Jane Smith"], arguments, Role.INVOKER, Role.RESTORER)
    assert made["metadata"]["redactions"] == {"PERSON_1": "Jane Smith", "PERSON_2": "José"}


async def test_history_of_the_scope_stays_as_it_is(rest: Rest) -> None:
    await put(rest, "pii_redaction", "tell")
    first = await run(rest, ["Jane Smith"], {"scope": "s", "tell": {"text": "-"}})
    keep = {"scope": "s", "pii_redaction": {"handles_in_input": "keep"}, "tell": {"text": "[PERSON_1] "}}
    second = await run(rest, [*first["content"], "José [PERSON_9]"], keep)
    assert second["content"] == ["[LITERAL_2] -[PERSON_1]", "[PERSON_2] [LITERAL_1]"]


async def test_masks_are_settled_at_their_step(rest: Rest) -> None:
    await put(rest, {"name": "pii_redaction", "arguments": {"mode": {"person": "hash"}}}, "tell")
    made = await run(rest, [TEXT])
    assert made["content"][0].startswith("Found: #PERSON and #PERSON say [LITERAL_1].")
    assert "Jane" not in str(made)


async def test_a_dry_run_shows_each_change_and_stores_nothing(rest: Rest) -> None:
    await put(rest, "pii_redaction", "tell")
    body = {
        "arguments": {"scope": "s", "tell": {"text": "José: "}},
        "context": ["Jane Smith", {"type": "image"}],
    }
    answer = await rest.call("POST", f"{PATH}/to_model/dry-run", body, roles=[Role.INVOKER])
    shown = answer.json()
    assert shown["content"][0] == "[PERSON_2]: [PERSON_1]"
    redaction, told = shown["metadata"]["steps"]
    assert redaction["changes"] == [{"item": 0, "before": "Jane Smith", "after": "[PERSON_1]"}]
    assert told["changes"] == [{"item": 0, "before": "[PERSON_1]", "after": "[PERSON_2]: [PERSON_1]"}]
    assert shown["metadata"]["dryRun"] is True and "scope" not in shown["metadata"]
    known = await rest.invoke("pii_restoration", ["[PERSON_1]"], {"scope": "s"}, roles=[Role.RESTORER])
    assert known.json()["content"] == ["[PERSON_1]"]
    (event,) = await events(rest, "middleware.dry_run")
    assert event["outcome"] == "ok" and "Jane" not in str(event)
    as_argument = await run(rest, ["Jane Smith"], {"dryRun": True})
    assert as_argument["metadata"]["dryRun"] is True
    absent = await rest.call("POST", f"{PATH}/nobody/dry-run", body, roles=[Role.INVOKER])
    assert absent.status_code == 404


async def test_versions_count_on_and_a_stale_change_is_refused(rest: Rest) -> None:
    async def call(method: str, path: str = "", body: Any = None) -> Any:
        return await rest.call(method, f"{PATH}/to_model{path}", body, roles=[Role.OPERATOR])

    assert (await put(rest, "tell"))["version"] == 1
    body = {"name": "to_model", "steps": [{"name": "pii_redaction"}]}
    assert (await call("PUT", "?expected_version=0", body)).status_code == 409
    assert (await call("PUT", "?expected_version=1", body)).json()["version"] == 2
    assert (await call("DELETE", "?expected_version=1")).status_code == 409
    assert (await call("DELETE")).status_code == 204
    assert (await call("GET")).status_code == 404
    gone = await rest.invoke("to_model", ["x"], roles=[Role.INVOKER])
    assert gone.json()["code"] == "not_found" and "to_model" not in gone.json()["details"]["known"]
    assert (await call("PUT", "?expected_version=0", body)).json()["version"] == 4
    versions = (await call("GET", "/versions?limit=2")).json()
    assert [(one["version"], one["state"]) for one in versions["items"]] == [(4, "active"), (3, "removed")]
    older = (await call("GET", f"/versions?cursor={versions['next']}")).json()
    assert [one["version"] for one in older["items"]] == [2, 1]
    listed = await rest.call("GET", PATH, roles=[Role.OPERATOR])
    assert [one["pipeline"] for one in listed.json()["items"]] == [{**body, "phase": "outbound"}]
    refused = await rest.call("PUT", f"{PATH}/to_model", body, roles=[Role.INVOKER])
    assert refused.status_code == 403
    kept = [(one["action"], one["outcome"]) for one in await events(rest, "pipelines.put")]
    assert kept.count(("pipelines.put", "ok")) == 3 and kept.count(("pipelines.put", "refused")) == 2


async def test_a_change_makes_one_tenant_s_pipelines_be_read_again(rest: Rest) -> None:
    await put(rest, "tell")
    service = rest.services.pipelines
    held = await service.of(rest.tenant)
    await service.memory.get("elsewhere", lambda _tenant: asyncio.sleep(0, held))
    service.changed(Changed(PIPELINES_CHANGED, "elsewhere"))
    assert service.memory.peek("elsewhere") is None
    assert service.memory.peek(rest.tenant) is not None, "the control: only that tenant's are forgotten"


class Rewrite(Middleware[Arguments]):
    """Answers with a text of its own, as a middleware that runs elsewhere does."""

    name = "rewrite"
    title = "Rewrite"
    description = "Answers with a text of its own"
    phase = "outbound"
    arguments = Arguments

    async def apply(self, context: Context, arguments: Arguments) -> Outcome:
        return Outcome(Context.parse([f"{item} and José" for item in context.items]))


async def test_a_step_that_answers_a_text_of_its_own_is_looked_at_as_a_whole(rest: Rest) -> None:
    rest.services.invoke.registry.middlewares.update(rewrite=Rewrite(engines()))  # type: ignore[attr-defined]
    await put(rest, "pii_redaction", "rewrite")
    made = await run(rest, ["I am Jane Smith, not [PERSON_1]."], {"scope": "s"})
    assert made["content"] == ["I am [PERSON_1], not [LITERAL_1]. and [PERSON_2]"]
    back = await rest.invoke("pii_restoration", made["content"], {"scope": "s"}, roles=[Role.RESTORER])
    assert back.json()["content"] == ["I am Jane Smith, not [PERSON_1]. and José"]


async def test_two_steps_that_redact_share_one_scope_and_one_record(rest: Rest) -> None:
    await put(
        rest, "pii_redaction", "secret_redaction", {"name": "tell", "arguments": {"text": "John Doe: "}}
    )
    text = "Jane Smith has AKIAIOSFODNN7EXAMPLQ."
    made = await run(rest, [text], {"scope": "s"})
    assert made["content"][0].startswith("[PERSON_2]: [PERSON_1] has")
    back = await rest.invoke("pii_restoration", made["content"], {"scope": "s"}, roles=[Role.RESTORER])
    assert back.json()["content"] == [f"John Doe: {text}"]
    assert [event["outcome"] for event in await events(rest)] == ["ok", "ok"]
    apart = [
        {"name": "pii_redaction", "arguments": {"scope": "a"}},
        {"name": "secret_redaction", "arguments": {"scope": "b"}},
    ]
    assert (await put(rest, *apart, code=422))["pointer"] == "/steps"


async def test_the_examples_of_the_page_can_be_stored(rest: Rest) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text()
    examples = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    assert [one["name"] for one in examples] == ["to_model", "from_model"]
    for one in examples:
        answer = await rest.call("PUT", f"{PATH}/{one['name']}", one, roles=[Role.OPERATOR])
        assert answer.status_code == 200, answer.text


async def test_every_process_follows_a_change(database_url: str, rest: Rest) -> None:
    second = Database(database_url)
    other = replace(rest.services.pipelines, database=second, memory=ShortMemory(ttl_s=3600, size=10))
    source = rest.vault.database if second.embedded else second
    changes = Changes(source)
    changes.subscribe(other.changed)
    async with changes.running():
        assert await other.of(rest.tenant) == {}
        held = await put(rest, "tell")
        await put(rest, "pii_redaction")
        async with asyncio.timeout(20):
            while (await other.of(rest.tenant)).get("to_model", PENDING).version != held["version"] + 1:
                await asyncio.sleep(0.02)
    await second.close()
