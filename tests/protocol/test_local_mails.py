"""Local mails at every door: phone numbers without a cue, identifiers by their local names, people and things."""

import re
from typing import Any

import httpx2

from tests.pii_local import ENGLISH, NAMED, TEXTS, drawn
from tests.protocol.mcp_service import KEY, service
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client

HANDLE = re.compile(r"\[[A-Z]+(?:_[A-Z]+)*_\d+\]")
DOORS = (HANDSHAKE, MODERN, "rest")
SHORT = {
    "cs": (
        "Dobrý den, objednané zboží zatím nedorazilo, prosím o kontrolu. "
        "Zítra jsem celý den doma, pak až v pondělí. Děkuji vám."
    ),
    "tr": (
        "Merhaba, verdiğim sipariş henüz gelmedi, lütfen kontrol eder misiniz? "
        "Yarın bütün gün evdeyim, sonra ancak haftaya varım. Teşekkürler."
    ),
    "pl": (
        "Dzień dobry, zamówiony towar jeszcze nie dotarł, proszę o sprawdzenie. "
        "Jutro jestem cały dzień w domu, potem dopiero później. Dziękuję."
    ),
    "fi": (
        "Hei, tilaamani tavara ei ole vielä tullut, voisitteko tarkistaa asian. "
        "Huomenna olen koko päivän kotona, sitten vasta myöhemmin. Kiitos."
    ),
    "hu": (
        "Jó napot, a megrendelt áru még nem érkezett meg, kérem, nézzék meg. "
        "Holnap egész nap itthon vagyok, utána csak később. Köszönöm."
    ),
    "vi": (
        "Xin chào, món hàng tôi đặt vẫn chưa đến, nhờ kiểm tra giúp. "
        "Ngày mai tôi ở nhà cả ngày, sau đó thì không. Cảm ơn."
    ),
}
"""Mails of some twenty words without a name, in languages that a warning names."""

ARTICLES = ["22412345678", "A012345678Z", "42101-1234567-1", "3174052505900003", "900101-14-5678"]
PEOPLE = {
    "Our lawyers are Nguyen, Mbeki & Pemberton.": "Our lawyers are [], [] & [].",
    "According to Lindholm, the valve was open.": "According to [], the valve was open.",
    "# HACK(quelda): drop it": "# HACK([]): drop it",
    "please forward this to hugo frolich before the meeting": "please forward this to [] before the meeting",
    "REMINDER\nWE ARE STILL WAITING FOR MS KOWALSKI TO SIGN THE FORM": (
        "REMINDER\nWE ARE STILL WAITING FOR MS [] TO SIGN THE FORM"
    ),
    "<zofka> hello there\n<veldkamp> it is done": "<[]> hello there\n<[]> it is done",
}
THINGS = [
    "Please restart Fiona 3.2.1 before noon.",
    "Is the Fiona plugin signed?",
    "She was treated for Kellner's disease.",
    "The office is on Brandt Street, second floor.",
    "I bought these shoes at Anton Berg.",
    "Our suppliers are Siemens, Bosch & Philips.",
    "Elevii de la Liceul Andrei Popescu au plecat ieri în excursie la munte.",
    "Bu yıl yağmurlar Kasım ayında başladı ve köprü için yapılan çalışmalar durdu.",
    "Os alunos da Escola Manuel Teixeira não vieram ontem à aula de música.",
]


async def answered(door: str, url: str, texts: list[str], **more: str) -> tuple[list[str], str]:
    """Return what a door makes of texts, and its warnings; roles alternate, so that each is read alone."""
    name, roles = "pii_redaction", ["user", "assistant"] * len(texts)
    context = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    result: dict[str, Any]
    if door != "rest":
        async with client(url, door, str(KEY)) as wire:
            result = (await wire.invoke(*context, name=name, arguments=more)).result
    else:
        async with httpx2.AsyncClient(headers={"authorization": f"Bearer {KEY}"}, timeout=60) as http:
            path = f"{url.removesuffix('/mcp')}/api/v1/middleware/{name}/invoke"
            response = await http.post(path, json={"arguments": more, "context": context})
            response.raise_for_status()
            result = response.json()
    return [item["content"] for item in result["content"]], " ".join(result["metadata"].get("warnings", []))


async def test_phones_without_a_cue_are_hidden_where_the_language_names_the_country(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        numbers = {region: drawn(region, 1)[0] for region in TEXTS}
        local = [TEXTS[region].format(f"{number}.") for region, number in numbers.items()]
        foreign = [ENGLISH.format(f"{numbers[region]}.") for region in ("CZ", "DK", "NO", "PL", "PT", "RU")]
        for door in DOORS:
            after, _ = await answered(door, url, local)
            for region, text in zip(numbers, after, strict=True):
                assert numbers[region] not in text and text.count("[PHONE_") == 1, (door, region, text)
            # Another conversation: what one has hidden as a phone number is known there.
            kept, _ = await answered(door, url, foreign)
            assert kept == foreign, door


async def test_identifiers_are_hidden_beside_the_names_that_local_mails_give_them(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        texts = [text.format(value) for text, value in NAMED]
        bare = [f"The pump with article {value} was replaced, and the valve tested." for value in ARTICLES]
        for door in DOORS:
            after, _ = await answered(door, url, texts)
            for (_, value), text in zip(NAMED, after, strict=True):
                assert value not in text and HANDLE.search(text), (door, value, text)
            kept, _ = await answered(door, url, bare)
            assert kept == bare, door


async def test_short_mails_are_told_by_their_language_and_keep_their_words(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in DOORS:
            for code, text in SHORT.items():
                after, warnings = await answered(door, url, [text])
                assert after == [text] and f"'{code}'" in warnings, (door, code, after, warnings)
            _, warnings = await answered(door, url, [ENGLISH.format("It rains.")])
            assert warnings == "", door


async def test_people_are_hidden_and_things_called_like_them_stay(tmp_path):
    async with service(f"sqlite:///{tmp_path}/sluice.db") as (url, _):
        for door in DOORS:
            hidden, _ = await answered(door, url, list(PEOPLE))
            for text, want in zip(hidden, PEOPLE.values(), strict=True):
                pieces = want.split("[]")
                assert text.startswith(pieces[0]) and text.endswith(pieces[-1]), (door, text)
                assert text.count("[PERSON_") == len(pieces) - 1, (door, text)
            kept, _ = await answered(door, url, THINGS)
            assert kept == THINGS, door
            strict, _ = await answered(door, url, THINGS[:1], aggressiveness="strict")
            assert "Fiona" not in strict[0], door
