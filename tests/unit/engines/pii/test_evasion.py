"""Disguised data is found, and what is cut out of the original holds the disguise as well."""

import base64
import random
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.content.context import Context
from app.core.contracts.engines import Detection, DetectionOptions
from app.engines.pii.processes.recall import runs_of
from app.engines.pii.search.analyzer import Analyzer
from app.engines.pii.search.borders import scan_run
from app.engines.views.plain import plain_view
from app.middlewares.pii_redaction.middleware import PiiRedaction, PiiRedactionArguments
from tests.fakes import FakeDetector, MemoryVault, engines
from tests.unit.engines.pii.conftest import Find
from tests.unit.engines.pii.disguises import DISGUISES, KINDS

DISGUISED = [
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
    ("disguised", "label"), [case[1:] for case in DISGUISED], ids=[case[0] for case in DISGUISED]
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


def shown(text: str) -> str:
    """Return what is left of a text without what shows nothing."""
    return "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Mn", "Zs"))


def uncovered(analyzer: Analyzer, before: str, disguised: str, after: str, label: str) -> str:
    """Return the part of a disguised value that no finding covers, or all of it where none has the label."""
    text = before + disguised + after
    spans = analyzer.scan(text, DetectionOptions())
    places = range(len(before), len(before) + len(disguised))
    if not any(
        span.label == label and span.start < places.stop and span.end > places.start for span in spans
    ):
        return disguised
    return shown("".join(text[p] for p in places if not any(span.start <= p < span.end for span in spans)))


@pytest.mark.parametrize("disguise", DISGUISES)
def test_every_kind_of_data_is_found_in_every_disguise(analyzer: Analyzer, disguise: str) -> None:
    passed = {
        label: left
        for label, (value, before) in KINDS.items()
        if (left := uncovered(analyzer, before, DISGUISES[disguise](value), " for now.", label))
    }
    assert passed == {}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_the_scan_of_the_text_as_it_is_would_miss_some(analyzer: Analyzer, disguise: str) -> None:
    """The negative control: without views, each disguise hides a number or an account."""

    def found(label: str) -> bool:
        value, before = KINDS[label]
        disguised = DISGUISES[disguise](value)
        findings = analyzer._search.findings(before + disguised + " for now.", DetectionOptions())
        return any(
            one.label == label and one.start <= len(before) and one.end >= len(before + disguised)
            for one in findings
        )

    assert not (found("SSN") and found("IBAN"))


class AnalyzingDetector(FakeDetector):
    """The analyzer without processes."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self.analyzer = analyzer

    async def detect(
        self,
        texts: Sequence[str],
        options: DetectionOptions,
        *,
        tenant: str = "",
        joined: Sequence[Sequence[int]] = (),
    ) -> Detection:
        found = {}
        for run in runs_of(len(texts), joined):
            spans = scan_run([texts[place] for place in run], lambda text: self.analyzer.scan(text, options))
            found.update(zip(run, spans, strict=True))
        return Detection([found[place] for place in range(len(texts))], "test")


@pytest.mark.parametrize("label", KINDS)
async def test_disguised_and_split_data_leaves_and_comes_back_exactly(analyzer: Analyzer, label: str) -> None:
    value, before = KINDS[label]
    middle = len(value) // 2
    texts = [f"{before}{disguise(value)} for now." for disguise in DISGUISES.values()]
    texts += [before + value[:middle], value[middle:] + " for now."]
    items = [{"type": "text", "text": text} for text in texts]
    vault = MemoryVault()
    outcome = await PiiRedaction(engines(AnalyzingDetector(analyzer))).apply(
        Context.parse(items), PiiRedactionArguments()
    )
    redacted = [item["text"] for item in vault.settle(outcome.context).to_json()]
    assert all("[" in text for text in redacted)
    assert not any(value in text for text in redacted)
    assert value[middle:].strip() not in redacted[-1]
    for handle, original in vault.originals.items():
        redacted = [text.replace(str(handle), original.text) for text in redacted]
    assert redacted == texts


HONEST = [
    *("a", "The", "123", "(x)", "\u00e9t\u00e9", "%", "&", "=", "\\", "/usr/lib"),
    *("\u4e2d\u6587", "\u041c\u0438\u0440", "x=42", "50%", "[1]"),
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(HONEST), max_size=8).map(" ".join),
    st.lists(st.sampled_from(HONEST), max_size=8).map(" ".join),
    st.sampled_from(sorted(DISGUISES)),
    st.sampled_from(["CARD", "SSN", "EMAIL", "IBAN"]),
)
def test_a_disguised_value_is_cut_out_of_any_text_at_its_place(
    analyzer: Analyzer, before: str, after: str, disguise: str, label: str
) -> None:
    value, cue = KINDS[label]
    assert uncovered(analyzer, f"{before}. {cue}", DISGUISES[disguise](value), f" . {after}", label) == ""


QUIET = [
    "See https://example.com/a%20b?q=x%26y&amp;z and &copy; 2024, 100% of x=20.",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, id 5f4dcc3b5aa765d61d8327deb882cf99",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "0 1 0 1 1 0 0 1 0 1 1 1 0 and 3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3 2 3 8 4",
    "def handler(at): return dot(at) or f(x) [at] 3",
    "C:\\new\\table\\u.txt \\d{3}-\\d{2} \\x \\n",
    "\u5317\u4eac\u5e02\uff0c\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002",
    "Vive l\u2019\u00e9t\u00e9 \u2014 na\u00efve \u201cwords\u201d\u2026",
]


@pytest.mark.parametrize("text", QUIET)
def test_hashes_links_code_and_prose_raise_no_alarm(find: Find, text: str) -> None:
    assert find(text) == []


def test_an_image_in_base64_is_no_opaque_run_and_a_run_of_digits_is(find: Find) -> None:
    image = base64.b64encode(random.Random(3).randbytes(9_000)).decode()
    assert find(f"data:image/png;base64,{image}") == []
    assert find("1" * 9_000) == [("1" * 9_000, "OPAQUE")]


def test_what_is_wrapped_once_too_often_is_sealed(find: Find) -> None:
    wrapped = "plain words and nothing else to see here"
    for _ in range(3):
        wrapped = DISGUISES["base64"](wrapped)
    assert find(wrapped) == []
    wrapped = DISGUISES["base64"](wrapped)
    assert find(wrapped) == [(wrapped, "OPAQUE")]
