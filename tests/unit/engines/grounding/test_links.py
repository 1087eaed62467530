"""Which links of an answer are known, and which known one was meant."""

import pytest

from app.engines.grounding.links import links_in
from tests.unit.engines.grounding.checking import findings, found_texts

PAGE = "https://docs.sluice.dev/guide/installation"


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        (PAGE, f"{PAGE}/"),
        (PAGE, "http://docs.sluice.dev/guide/installation"),
        (PAGE, "HTTPS://DOCS.Sluice.dev:443/guide/installation"),
        (PAGE, f"{PAGE}?utm_source=chat&utm_medium=x"),
        (PAGE, f"{PAGE}#linux"),
        (PAGE, f"[the guide]({PAGE})."),
        (PAGE, f"<{PAGE}>, and more"),
        (PAGE, f"({PAGE})"),
        (PAGE, f"**{PAGE}**"),
        (PAGE, f"[{PAGE}]({PAGE})"),
        ("https://a.dev/x%20y", "https://a.dev/x%20y"),
        ("https://a.dev/caf%C3%A9", "https://a.dev/caf\u00e9"),
        ("https://a.dev/?b=2&a=1", "https://a.dev/?a=1&b=2"),
        ("https://www.a.dev/x", "https://a.dev/x"),
        ("See docs.sluice.dev/guide for it.", "https://docs.sluice.dev/guide"),
        ("https://en.wikipedia.org/wiki/Sluice_(gate)", "(see https://en.wikipedia.org/wiki/Sluice_(gate))"),
        ("https://a.dev:8443/x", "https://a.dev:8443/x"),
    ],
)
async def test_the_same_address_in_another_spelling_is_known(known, answer):
    assert await findings("urls", answer, known) == []


@pytest.mark.parametrize(
    ("answer", "severity"),
    [
        ("https://other.dev/guide/installation/of/things", "high"),
        ("https://docs.sluice.dev/tutorial", "medium"),
        ("https://docs.sluice.dev/guide", "low"),
        ("http://localhost:8080/health", "low"),
        ("https://example.com/your/page", "low"),
        ("www.elsewhere.dev", "high"),
    ],
)
async def test_an_unknown_address_is_found_by_how_much_of_it_is_known(answer, severity):
    (found,) = await findings("urls", f"Look at {answer}, please.", f"The guide: {PAGE}.")
    assert (found.severity, found.fix) == (severity, None)
    assert f"Look at {answer}, please."[found.start : found.end] == answer


@pytest.mark.parametrize(
    "broken",
    [
        "https://docs.sluice.dev/guide/instalation",
        "https://docs.sluice.dev/giude/installation",
        "https://docs.sluise.dev/guide/installation",
        "https://docs.sluice.dev/guide/Instalation/",
        "https://docs.sluice.dev/guide/INSTALLATION",
        "http://docs.sluice.dev/guide/installation-",
    ],
)
async def test_a_near_miss_is_mended(broken):
    (found,) = await findings("urls", broken, f"The guide: {PAGE}.", "https://docs.sluice.dev/api/reference")
    assert found.fix == PAGE


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        ("https://a.dev/issues/1235", ["https://a.dev/issues/1234"]),
        ("https://a.dev/v2/guide", ["https://a.dev/v1/guide"]),
        ("https://a.dev/docs/enable", ["https://a.dev/docs/disable"]),
        ("https://a.dev/encoding/encode-text", ["https://a.dev/encoding/decode-text"]),
        (
            "https://a.dev/documentation/guids",
            ["https://a.dev/documentation/guide", "https://a.dev/documentation/guidz"],
        ),
        ("https://ab.dev/x", ["https://ac.dev/x"]),
    ],
)
async def test_another_number_meaning_or_two_candidates_are_never_mended(answer, known):
    (found,) = await findings("urls", answer, " ".join(known))
    assert found.fix is None


def test_links_end_where_their_sentence_goes_on():
    text = "See https://a.dev/x. Or (https://b.dev/y), \u201chttps://c.dev/z\u201d; `https://d.dev/w`!"
    assert [one.text for one in links_in(text)] == [
        "https://a.dev/x",
        "https://b.dev/y",
        "https://c.dev/z",
        "https://d.dev/w",
    ]


async def test_broken_addresses_are_no_fault_of_ours():
    assert await found_texts("urls", "http:// http://[ https://a.dev:99999999/x http://%", "x") == []
