"""Disguised data is found, and what is cut out of the original holds the disguise as well."""

import pytest

from app.engines.views.plain import plain_view
from tests.unit.engines.pii.conftest import Find

DISGUISES = [
    ("zero-width space", "jo\u200bhn@exam\u200bple.com", "EMAIL"),
    ("zero-width joiner", "123\u200d-45-\u200d6789", "SSN"),
    ("word joiner", "4111\u2060 1111 1111 11\u206011", "CARD"),
    ("soft hyphen", "jane.smi\u00adth@example.com", "EMAIL"),
    ("byte order mark", "219-09\ufeff-9999", "SSN"),
    ("right-to-left override", "219-\u202e09\u202c-9999", "SSN"),
    ("variation selector", "2\ufe0f19-09-9999", "SSN"),
    ("tag characters", "219-09\U000e0041-9999", "SSN"),
    ("combining marks", "j\u0301ohn@e\u0308xample.com", "EMAIL"),
    ("combining on digits", "2\u03361\u03369-0\u03369-9999", "SSN"),
    ("full width", "２１９-０９-９９９９", "SSN"),
    ("full-width mail", "ｊｏｈｎ＠ｅｘａｍｐｌｅ．ｃｏｍ", "EMAIL"),
    ("bold mathematical", "𝐣𝐨𝐡𝐧@𝐞𝐱𝐚𝐦𝐩𝐥𝐞.com", "EMAIL"),
    ("circled digits", "②①⑨-⓪⑨-⑨⑨⑨⑨", "SSN"),
    ("Arabic digits", "٢١٩-٠٩-٩٩٩٩", "SSN"),
    ("Devanagari digits", "२१९-०९-९९९९", "SSN"),
    ("Cyrillic look-alikes", "јоhn@ехаmрlе.соm", "EMAIL"),
    ("Greek look-alikes", "jοhn@example.cοm", "EMAIL"),
    ("figure dashes", "219‒09‒9999", "SSN"),
    ("en dashes", "219–09–9999", "SSN"),
    ("minus signs", "219−09−9999", "SSN"),
    ("non-breaking hyphens", "219‑09‑9999", "SSN"),
    ("no-break spaces", "4111\u00a01111\u00a01111\u00a01111", "CARD"),
    ("thin spaces", "4111\u20091111\u20091111\u20091111", "CARD"),
    ("ideographic full stop", "john@example。com", "EMAIL"),
    ("look-alikes in an IBAN", "DЕ89 3704 0044 0532 0130 00", "IBAN"),
    ("full-width IP", "１０．０．０．１", "IP"),
]


@pytest.mark.parametrize(
    ("disguised", "label"), [case[1:] for case in DISGUISES], ids=[case[0] for case in DISGUISES]
)
def test_a_disguised_identifier_is_found_whole(find: Find, disguised: str, label: str) -> None:
    assert (disguised, label) in find(f"Please note {disguised} for later.")


def test_a_disguised_name_is_found(find: Find) -> None:
    assert find("My name is Jo\u200bhn D\u043ee and I live here.") == [("Jo\u200bhn D\u043ee", "PERSON")]


def test_a_decomposed_name_is_cut_with_its_last_accent(find: Find) -> None:
    assert find("Please ask Jose\u0301 about it, said Andre\u0301 Dupre\u0301.")[-1][0].endswith("\u0301")


def test_disguise_far_from_the_start_is_mapped_to_the_right_place(find: Find) -> None:
    text = "naïve – “plain” words… " * 3000 + "219\u200b-09-9999" + " more – words" * 3000
    assert find(text) == [("219\u200b-09-9999", "SSN")]


def test_plain_text_and_honest_accents_have_no_view() -> None:
    assert plain_view("plain ASCII, 123-45-6789") is None
    assert plain_view("naïve café, Müller, Иван Петров, 東京") is None


def test_every_span_of_a_view_maps_to_a_span_of_the_original() -> None:
    text = "a\u200bb２–①x\u0301 Ⅷ﷽ é𝐣ﬁ\ufeffz" * 5
    view = plain_view(text)
    assert view is not None
    for start in range(len(view.text)):
        for end in range(start + 1, min(len(view.text), start + 9)):
            low, high = view.original_span(start, end)
            assert 0 <= low < high <= len(text)
    assert view.original_span(0, len(view.text)) == (0, len(text))


def test_the_windows_of_a_view_hold_every_change() -> None:
    text = ("x" * 700 + " \u200b ") * 5
    view = plain_view(text)
    assert view is not None
    windows = list(view.windows())
    changed = [(start, end) for start, end, _ in view.changed]
    assert all(any(low <= start <= end <= high for low, high in windows) for start, end in changed)
    assert sum(high - low for low, high in windows) < len(text)
