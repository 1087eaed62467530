"""What is restored, withheld and not known is added up over the steps of a call, and is on record so."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import Role
from tests.integration.pipelines_setup import events, open_pipelines, put
from tests.integration.rest_app import Rest

BOTH = [Role.INVOKER, Role.RESTORER]


@pytest.fixture
async def rest(sqlite_database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rest]:
    async with open_pipelines(sqlite_database_url, monkeypatch) as opened:
        await opened.invoke("pii_redaction", ["Jane Smith and John Doe"], {"scope": "s"})
        yield opened


async def newest_counts(rest: Rest) -> dict[str, Any]:
    return dict((await events(rest))[0]["counts"])


async def test_what_the_caller_gave_the_vault_has_and_nobody_knows_is_added_up(rest: Rest) -> None:
    text = "[PERSON_1], [PERSON_2], [SSN_1], [SSN_8], [SSN_9], https://x.org/[PERSON_1]"
    made = await rest.invoke(
        "pii_restoration", [text], {"scope": "s", "redactions": {"SSN_1": "123-45-6789"}}, roles=BOTH
    )
    assert made.json()["content"] == [
        "Jane Smith, John Doe, 123-45-6789, [SSN_8], [SSN_9], https://x.org/[PERSON_1]"
    ]
    assert made.json()["metadata"] == {"unresolved": 3, "withheld": 1, "handlesLeft": 3}
    assert await newest_counts(rest) == {"restored": 3, "withheld": 1, "unresolved": 3}


async def test_the_steps_of_a_pipeline_are_added_up(rest: Rest) -> None:
    await put(rest, "pii_restoration", "pii_restoration", phase="inbound")
    made = await rest.invoke("to_model", ["[PERSON_1] [PERSON_8] [PERSON_9]"], {"scope": "s"}, roles=BOTH)
    assert made.json()["content"] == ["Jane Smith [PERSON_8] [PERSON_9]"]
    assert [one["metadata"]["unresolved"] for one in made.json()["metadata"]["steps"]] == [2, 2]
    assert "unresolved" not in made.json()["metadata"], "two steps say it, so neither speaks for the whole"
    assert await newest_counts(rest) == {"restored": 1, "withheld": 0, "unresolved": 4}


async def test_what_each_redacting_step_found_is_added_up(rest: Rest) -> None:
    await put(rest, "pii_redaction", {"name": "tell", "arguments": {"text": "John Doe: "}}, "pii_redaction")
    made = await rest.invoke("to_model", ["Jane Smith"], roles=[Role.INVOKER])
    assert made.json()["content"] == ["[PERSON_2]: [PERSON_1]"]
    assert (await newest_counts(rest))["PERSON"] == 2


async def test_each_original_that_stays_out_of_an_address_is_counted(rest: Rest) -> None:
    text = "See https://x.org/?a=[PERSON_1] and https://y.org/?b=[PERSON_2], [PERSON_1]."
    made = await rest.invoke("pii_restoration", [text], {"scope": "s"}, roles=BOTH)
    assert made.json()["content"] == [
        "See https://x.org/?a=[PERSON_1] and https://y.org/?b=[PERSON_2], Jane Smith."
    ]
    assert made.json()["metadata"]["withheld"] == 2
    assert (await newest_counts(rest))["withheld"] == 2
