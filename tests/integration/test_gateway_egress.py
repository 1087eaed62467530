"""Nothing that a conversation's scope knows leaves in clear: replaced in texts, refused elsewhere."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from app.core.content.handles import Handle, Original
from app.engines.originals import OriginalFinder, is_telling
from app.services.gateway.egress import EgressRefusedError, checked
from app.store.database import Database
from tests.integration.test_gateway_scopes import FIRST, PLANTED, serving, user

NAMES = {
    "Ada Lovelace": "PERSON",
    "ada@example.org": "EMAIL",
    "+44 20 7946 0958": "PHONE",
    "442079460958": "PHONE",
    "Zoë": "PERSON",
    "Łukasz Żak": "PERSON",
    "王小明": "PERSON",
    "hunter2!x": "SECRET_PASSWORD",
    'Jo "Q" O\\Neil': "PERSON",
}
USUAL = {"May": "PERSON", "August": "PERSON", "1990": "DATE", "12:30": "DATE", "Bo": "PERSON", "李": "PERSON"}


def finder_of(texts: Mapping[str, str]) -> OriginalFinder:
    """Return a finder of ``texts`` by label, each with the ordinal of its place."""
    finder = OriginalFinder()
    finder.add(
        (Handle(label, number), Original(text)) for number, (text, label) in enumerate(texts.items(), 1)
    )
    return finder


@pytest.mark.parametrize("text", [name for name in NAMES if name != "Zoë"])
@pytest.mark.parametrize(
    "written",
    [
        "{}",
        "Dear {}, hello",
        "({})",
        "<b>{}</b>",
        "name={};",
        "a\n{}\nb",
        "\u201c{}\u201d",
    ],
)
def test_an_original_is_found_wherever_it_stands_as_a_word(text: str, written: str) -> None:
    whole = written.format(text)
    assert [(whole[match.start : match.end]) for match in finder_of(NAMES).find(whole)] == [text]


@pytest.mark.parametrize("text", [name for name in NAMES if name != "Zoë"])
def test_an_original_is_found_inside_of_json_and_urls(text: str) -> None:
    from urllib.parse import quote, quote_plus

    inner = {"note": f"a\n{text}\tb", "list": [text]}
    for whole in (
        json.dumps(inner),
        json.dumps(inner, ensure_ascii=False),
        f"https://example.org/?q={quote(text, safe='')}&x=1",
        f"https://example.org/?q={quote_plus(text)}&x=1",
    ):
        assert finder_of(NAMES).find(whole), whole


@pytest.mark.parametrize(
    "whole",
    [
        "May, August, 1990, 12:30, Bo and 李",
        "Mayor Bobby",
        "Adalovelace",
        "xada@example.orgx",
        "1442079460958",
        "4420794609581",
        "Ada  Lovelace",
        "[PERSON_1] and [EMAIL_2]",
    ],
)
def test_ordinary_words_and_parts_of_words_stop_nothing(whole: str) -> None:
    assert finder_of({**NAMES, **USUAL}).find(whole) == []


def test_what_is_short_or_a_word_of_the_calendar_is_not_looked_for() -> None:
    assert [text for text in USUAL if is_telling(text)] == []
    assert [text for text in NAMES if not is_telling(text)] == ["Zoë"]


def test_additions_are_found_like_the_first_ones_and_the_longest_counts() -> None:
    finder = OriginalFinder()
    names = [f"Person Number{number:04}" for number in range(700)]
    for start in range(0, 700, 7):
        part = range(start, start + 7)
        finder.add((Handle("PERSON", number + 1), Original(names[number])) for number in part)
    for number, name in enumerate(names, 1):
        assert [match.handle.ordinal for match in finder.find(f"a {name} b")] == [number]
    finder.add(
        [
            (Handle("PERSON", 900), Original("Number0001 Smith")),
            (Handle("PERSON", 901), Original("Person Number0001 Smith")),
        ]
    )
    assert [match.handle.ordinal for match in finder.find("Person Number0001 Smith")] == [901]


async def test_a_text_gets_its_handle_and_every_other_place_refuses(database: Database, tenant: str) -> None:
    ada = user(tenant, "ada")
    body: dict[str, Any] = {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "I am Ada Lovelace."}],
        "metadata": {"note": "x"},
        "max_tokens": 442079460958,
    }
    paths = [("messages", 0, "content"), ("metadata", "note")]
    async with serving(database) as gateway:
        vault, _ = await gateway.turn(ada, [FIRST])
        result = await checked(vault, json.dumps(body).encode(), lambda: paths)
        assert result.replaced == {("messages", 0, "content"): "I am [PERSON_1]."}
        assert result.counts == {"PERSON": 1}
        clean = {**body, "messages": [{"role": "user", "content": "Hello [PERSON_1]"}]}
        assert (await checked(vault, json.dumps(clean).encode(), lambda: paths)).replaced == {}
        for spoilt in (
            {"metadata": {"Ada Lovelace": "x"}},
            {"metadata": {"other": "ada@example.org"}},
            {"tools": [{"function": {"name": "x", "strict": "Ada Lovelace"}}]},
            {"stop": ["Ada Lovelace"]},
            {"messages": [{"role": "Ada Lovelace", "content": "x"}]},
        ):
            with pytest.raises(EgressRefusedError) as refused:
                await checked(vault, json.dumps({**clean, **spoilt}).encode(), lambda: paths)
            told = f"{refused.value.message} {refused.value.details}"
            assert not any(value in told for value in (*PLANTED, "metadata", "tools", "stop"))
        key = "slc_0a1b2c3d_" + "k" * 43
        with pytest.raises(EgressRefusedError, match="key of this service"):
            await checked(
                vault, json.dumps({**clean, "user": f"key {key}"}).encode(), lambda: [*paths, ("user",)]
            )


async def test_a_number_that_is_an_original_refuses(database: Database, tenant: str) -> None:
    ada = user(tenant, "ada")
    async with serving(database) as gateway:
        vault = await gateway.begin(ada, ["x"])
        await gateway.vault.store(ada, vault.scope.name, ("PHONE", "442079460958"))
        vault = await gateway.begin(ada, ["x"])
        assert (await checked(vault, b'{"seed": 44207946095, "n": 1.5e10}', list)).replaced == {}
        with pytest.raises(EgressRefusedError):
            await checked(vault, b'{"seed": 442079460958}', list)


async def test_originals_of_others_stop_nothing(database: Database, tenant: str) -> None:
    async with serving(database) as gateway:
        await gateway.turn(user(tenant, "ada"), [FIRST])
        vault, _ = await gateway.turn(user(tenant, "bob"), ["Hello."])
        assert (await checked(vault, json.dumps({"stop": [FIRST]}).encode(), list)).counts == {}
