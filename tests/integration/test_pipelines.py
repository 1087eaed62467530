"""Pipelines: one call, steps in order, additions redacted, handles given once, one record, and every failure rule."""

import math
from collections.abc import AsyncIterator

import pytest

from app.core.access import Caller, Role
from app.core.errors import ForbiddenError
from app.core.request import RequestInfo
from tests.integration.pipelines_setup import PATH, Tell, events, open_pipelines, put, run
from tests.integration.rest_app import Rest

TEXT = "I am Jane Smith, 123-45-6789. Not [PERSON_1]."


@pytest.fixture
async def rest(sqlite_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    async with open_pipelines(sqlite_database_url, monkeypatch) as opened:
        yield opened


@pytest.fixture
async def each(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    """Return the same on each database in turn."""
    async with open_pipelines(database_url, monkeypatch) as opened:
        yield opened


async def test_what_later_steps_add_is_redacted_too_and_all_of_it_comes_back(each: Rest) -> None:
    await put(each, "pii_redaction", "tell", "timestamp_injector")
    made = await run(each, [TEXT], {"scope": "s"})
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
    back = await each.invoke("pii_restoration", made["content"], {"scope": "s"}, roles=[Role.RESTORER])
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


async def test_handles_of_a_scope_go_on_and_the_same_prefix_gives_the_same(each: Rest) -> None:
    await put(each, "pii_redaction", "tell")
    await each.invoke("pii_redaction", ["John Doe"], {"scope": "s"})
    first = await run(each, [{"role": "user", "content": "Jane Smith"}], {"scope": "s"})
    turns = [{"role": "user", "content": "Jane Smith"}, {"role": "user", "content": "and José"}]
    second = await run(each, turns, {"scope": "s"})
    assert first["content"][0]["content"].endswith("\n\n[PERSON_2]")
    assert "Found: [PERSON_1] and [PERSON_2]" in first["content"][0]["content"]
    assert second["content"][0] == {"role": "user", "content": "[PERSON_2]"}
    assert second["content"][1]["content"].endswith("and [PERSON_3]")
    assert second["metadata"]["quoted"] == "[PERSON_2]", "metadata names handles as the answer does"


async def test_one_record_lists_the_steps_and_holds_nothing_else(each: Rest) -> None:
    await put(
        each, "pii_redaction", {"name": "tell", "on_error": "skip", "arguments": {"fail": "crash"}}, "tell"
    )
    await run(each, [TEXT], {"scope": "s"})
    (event,) = await events(each)
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
    step = {"name": "tell", "arguments": {"fail": fail}, "timeout_ms": 60 if fail == "hang" else 10_000}
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
    await rest.put_policy({"timeouts_ms": {"to_model": 50}}, roles=["operator"])
    late = await rest.invoke("to_model", [TEXT], roles=[Role.INVOKER])
    assert late.json()["code"] == "deadline_exceeded"


async def test_a_restoring_step_reads_the_vault_and_needs_the_restorer(each: Rest) -> None:
    await each.invoke("pii_redaction", ["Jane Smith"], {"scope": "s"})
    await put(each, "pii_restoration", "tell", phase="inbound")
    refused = await each.invoke("to_model", ["Dear [PERSON_1]"], {"scope": "s"}, roles=[Role.INVOKER])
    assert refused.json()["code"] == "forbidden" and "Jane" not in refused.text
    made = await each.invoke(
        *("to_model", ["Dear [PERSON_1] [PERSON_7]"], {"scope": "s", "tell": {"text": ">"}}),
        roles=[Role.RESTORER, Role.INVOKER],
    )
    assert made.json()["content"] == [">Dear Jane Smith [PERSON_7]"]
    assert made.json()["metadata"]["unresolved"] == 1
    newest = (await events(each))[0]
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
    keep = {"scope": "s", "tell": {"text": "[PERSON_1] "}}
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


async def test_who_may_not_invoke_gets_no_dry_run_and_learns_of_no_pipeline_by_any_door(rest: Rest) -> None:
    await put(rest, "tell")
    auditor = Caller(rest.tenant, "00000000", frozenset({Role.AUDITOR}))
    request = RequestInfo("request-1", None, None, math.inf)
    for name in ("to_model", "nobody"):
        refused = await rest.call("POST", f"{PATH}/{name}/dry-run", {"context": ["x"]}, roles=auditor.roles)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), name
        with pytest.raises(ForbiddenError):
            await rest.services.invoke.dry_run(auditor, name, {}, ["x"], request)
    assert [event["outcome"] for event in await events(rest, "middleware.dry_run")] == ["refused"] * 4


async def test_a_step_that_answers_a_text_of_its_own_is_looked_at_as_a_whole(rest: Rest) -> None:
    await put(rest, "pii_redaction", "rewrite")
    made = await run(rest, ["I am Jane Smith, not [PERSON_1]."], {"scope": "s"})
    assert made["content"] == ["I am [PERSON_1], not [LITERAL_1]. and [PERSON_2]"]
    back = await rest.invoke("pii_restoration", made["content"], {"scope": "s"}, roles=[Role.RESTORER])
    assert back.json()["content"] == ["I am Jane Smith, not [PERSON_1]. and José"]


async def test_two_steps_that_redact_share_one_scope_and_one_record(each: Rest) -> None:
    await put(
        each, "pii_redaction", "secret_redaction", {"name": "tell", "arguments": {"text": "John Doe: "}}
    )
    text = "Jane Smith has AKIAIOSFODNN7EXAMPLQ."
    made = await run(each, [text], {"scope": "s"})
    assert made["content"][0].startswith("[PERSON_2]: [PERSON_1] has")
    back = await each.invoke("pii_restoration", made["content"], {"scope": "s"}, roles=[Role.RESTORER])
    assert back.json()["content"] == [f"John Doe: {text}"]
    assert [event["outcome"] for event in await events(each)] == ["ok", "ok"]
    apart = [
        {"name": "pii_redaction", "arguments": {"scope": "a"}},
        {"name": "secret_redaction", "arguments": {"scope": "b"}},
    ]
    assert (await put(each, *apart, code=422))["pointer"] == "/steps"
