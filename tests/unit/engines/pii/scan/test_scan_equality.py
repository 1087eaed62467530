"""One scan finds what the recognizers find one by one: the same places, types and scores, whatever the matcher."""

import random
from collections import defaultdict
from pathlib import Path

import pytest
from presidio_analyzer.predefined_recognizers import PhoneRecognizer

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.tagger import TaggedSpan
from app.engines.pii.scan.digits import REACHES
from app.engines.pii.scan.image import image
from app.engines.pii.scan.matchers import HyperscanMatcher
from app.engines.pii.scan.once import ScanOnce, WantedRecognizers
from app.engines.pii.scan.plan import ScanPlan
from app.engines.pii.scan.weighing import PhraseWeighing
from app.engines.pii.search.searching import Search
from tests.pii_texts import drawn, some_text
from tests.sampling import examples
from tests.scan_engines import (
    MATCHERS,
    Find,
    default_recognizers,
    our_recognizers,
    ours_plain,
    presidio,
    scans_like_presidio,
    scans_ours,
)

PRESIDIO_TEXTS = examples(420, 70)
OUR_TEXTS = examples(80, 20)
SENTENCES = 3

SEARCHED_TEXTS = examples(60, 15)

WHOLE: frozenset[str] = frozenset()
"""Our recognizers that see the whole of each text; whoever adds one says why."""


@pytest.fixture(scope="module")
def ours() -> dict[str, tuple[ScanOnce, Find]]:
    return scans_ours()


def test_the_scan_over_the_registry_of_presidio_finds_what_presidio_finds() -> None:
    recognizers = default_recognizers()
    plain = presidio(recognizers)
    scans = list(scans_like_presidio(recognizers).values())
    rng, found = random.Random(5), 0
    for _ in range(PRESIDIO_TEXTS):
        text = some_text(rng, SENTENCES)
        expected = plain(text)
        found += len(expected)
        for scan in scans:
            assert scan(text) == expected, text
    assert found > PRESIDIO_TEXTS


def test_the_scan_over_our_registry_finds_what_the_plain_path_finds(
    ours: dict[str, tuple[ScanOnce, Find]],
) -> None:
    plain, rng, found = ours_plain(), random.Random(6), 0
    for _ in range(OUR_TEXTS):
        text = some_text(rng, SENTENCES)
        expected = plain(text)
        found += len(expected)
        for matcher in MATCHERS:
            assert ours[matcher][1](text) == expected, (matcher, text)
    assert found > OUR_TEXTS


def test_phone_numbers_are_found_whatever_separates_their_digits() -> None:
    recognizers = [PhoneRecognizer()]
    plain, scans = presidio(recognizers), scans_like_presidio(recognizers)
    texts = [f"16-8{mark}986 for it" for mark in "-xX\u30fc\u2212 /.~\uff0d\u3000"]
    assert any(map(plain, texts))
    for text in texts:
        assert [scan(text) for scan in scans.values()] == [plain(text)] * len(scans), text


def test_every_recognizer_of_ours_is_covered(ours: dict[str, tuple[ScanOnce, Find]]) -> None:
    plan = ours["plain"][0].plan
    covered = {rule.owner for unit in plan.units for rule in unit.rules}
    covered |= {rule.owner for rule in plan.whole.rules} | set(plan.custom)
    assert covered == set(range(len(our_recognizers())))
    assert {name.split(":", 1)[0] for name in plan.undivided} <= WHOLE


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_not_looked_for_without_a_word_of_its_context_is_not_found_either(*, strict: bool) -> None:
    options, rng = DetectionOptions(strict), random.Random(19)
    fast, plain = Search(_nobody), Search(_nobody, "plain")
    found = 0
    for _ in range(SEARCHED_TEXTS):
        text = some_text(rng, SENTENCES)
        expected = {(one.start, one.end, one.entity, one.score) for one in plain.findings(text, options)}
        assert {
            (one.start, one.end, one.entity, one.score) for one in fast.findings(text, options)
        } == expected
        found += len(expected)
    assert found > SEARCHED_TEXTS // 2


def _nobody(_text: str, _threshold: float) -> list[TaggedSpan]:
    """Find no names."""
    return []


@pytest.mark.parametrize("matcher", ["hyperscan", "re2"])
def test_what_a_pattern_matches_its_expression_hits(
    ours: dict[str, tuple[ScanOnce, Find]], matcher: str
) -> None:
    scan, rng, tried = ours[matcher][0], random.Random(7), defaultdict(int)
    for number, unit in enumerate(scan.plan.units):
        for rule in unit.rules:
            for _ in range(2):
                text = f" {drawn(rule.pattern, rng)} "
                alone: list[object] = []
                rule.run(text, [(0, len(text))], 0, alone, timed=True)  # type: ignore[arg-type]
                if alone:
                    seen = image(text)
                    hits = scan.matcher.hits(seen, scan.plan.needed({rule.owner}))
                    assert hits is not None
                    assert number in scan.plan.by_unit(hits, scan.matcher.grain, seen), (rule.name, text)
                    tried[rule.owner] += 1
    assert len(tried) > len(scan.recognizers) // 2


def test_expressions_of_recognizers_that_need_a_word_are_searched_where_one_of_theirs_is_active(
    ours: dict[str, tuple[ScanOnce, Find]],
) -> None:
    scan = ours["hyperscan"][0]
    plan, searched = scan.plan, set[int]()
    for number, part in enumerate(plan.parts):
        owners = {rule.owner for unit in plan.units_of[number] for rule in plan.units[unit].rules}
        assert (part > 0) == (owners <= plan.demanding and plan.reaches[number] == REACHES[0])
        assert all(part in plan.needed({owner}) for owner in owners)
    assert plan.needed(set()) == plan.needed(set(range(len(scan.recognizers))) - plan.demanding) == [0]
    seen = image(
        "my itin is 912-70-1234, the NHS number 943 476 5919, tax id 12 345 678 901, card 4111111111111111"
    )
    for part in range(max(plan.parts) + 1):
        hits = scan.matcher.hits(seen, {part})
        assert hits is not None
        assert {plan.parts[number] for number in hits} <= {part}
        searched |= hits.keys()
    whole = scan.matcher.hits(seen, range(max(plan.parts) + 1))
    assert whole is not None
    assert searched == set(whole)
    assert {plan.parts[number] for number in searched} > {0}


def test_a_text_with_few_digits_is_searched_without_a_pass_for_words(
    ours: dict[str, tuple[ScanOnce, Find]],
) -> None:
    scan, plain = ours["hyperscan"][0], ours["plain"][0]
    chosen = WantedRecognizers(dict.fromkeys(range(len(scan.recognizers)), 0.4), scan.plan.demanding)
    quiet = "The committee met again to talk about the garden and its old wall. " * 60
    near, far = f"{quiet} My ITIN is 912-70-1234.", f"My ITIN is late. {quiet} My order is 912-70-1234."
    types = []
    for text in (near, far, quiet):
        assert scan.matcher.words(image(text)) is None
        found = scan.search(text, chosen)
        assert sorted(found) == sorted(plain.search(text, chosen))
        types.append({one.entity for one in found})
    assert ["US_ITIN" in each for each in types] == [True, False, False]
    assert scan.matcher.words(image(near[-200:]))


def test_a_database_of_another_process_is_used_and_one_of_other_expressions_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = ScanPlan(default_recognizers()[:2], PhraseWeighing())
    first = HyperscanMatcher(plan.expressions, plan.first_word, plan.reaches, plan.parts)
    kept = first.serialized()
    compiled: list[int] = []

    class Watched(HyperscanMatcher):
        def _compiled(
            self, expressions: object, first_word: int, reaches: object, parts: object
        ) -> list[object]:
            compiled.append(first_word)
            return super()._compiled(expressions, first_word, reaches, parts)  # type: ignore[arg-type]

    seen = image("SSN 219-09-9999, jane@example.com")
    second = Watched(plan.expressions, plan.first_word, plan.reaches, plan.parts, kept)
    assert (compiled, second.words(seen), second.hits(seen, {0})) == (
        [],
        first.words(seen),
        first.hits(seen, {0}),
    )
    for spoilt in (kept[:-9], b"x" + kept[1:], b""):
        Watched(plan.expressions, plan.first_word, plan.reaches, plan.parts, spoilt)
    Watched(plan.expressions[:-1], plan.first_word, plan.reaches, plan.parts, kept)
    Watched(plan.expressions, plan.first_word, [0] * len(plan.reaches), plan.parts, kept)
    Watched(plan.expressions, plan.first_word, plan.reaches, [1] * len(plan.parts), kept)
    assert len(compiled) == 6
