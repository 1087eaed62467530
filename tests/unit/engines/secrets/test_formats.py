"""Every format is found in its examples and in nothing that only looks like it; examples are drawn, never stored."""

import random

import pytest

from app.core.content.secret_labels import SECRET_PROVIDERS
from app.core.contracts.engines import SecretOptions
from app.engines.secrets.checks import crc_holds
from app.engines.secrets.formats import SecretFormat, read_template
from app.engines.secrets.rules import FORMATS
from app.engines.secrets.scanner import RuleScanner

SCANNER = RuleScanner()


async def found(text: str) -> list[tuple[str, str]]:
    spans = (await SCANNER.scan([text], SecretOptions())).spans[0]
    return [(text[span.start : span.end], span.label) for span in spans]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: f"{kind.provider} {kind.template}")
async def test_a_format_is_found_in_its_examples_and_not_in_near_misses(kind: SecretFormat) -> None:
    draw = random.Random(kind.template)
    for _ in range(2):
        secret = kind.example(draw)
        assert secret in [text for text, _ in await found(kind.in_context(secret))]
    for near in kind.near_misses(draw):
        assert kind.label not in [label for _, label in await found(near)]


@pytest.mark.parametrize("around", ["backup_{}_old", "これは{}です"])
async def test_every_format_with_a_form_of_its_own_is_found_glued_to_other_text(around: str) -> None:
    own = [kind for kind in FORMATS if not kind.name]
    secrets = [kind.example(random.Random(kind.template)) for kind in own]
    assert len(secrets) > 300
    texts = [around.format(secret) for secret in secrets]
    spans = (await SCANNER.scan(texts, SecretOptions())).spans
    hidden = [
        any(secret in text[span.start : span.end] for span in spans_of_text)
        for secret, text, spans_of_text in zip(secrets, texts, spans, strict=True)
    ]
    assert [kind.template for kind, is_hidden in zip(own, hidden, strict=True) if not is_hidden] == []


def test_there_are_formats_of_more_than_a_hundred_and_fifty_providers() -> None:
    assert len({kind.provider for kind in FORMATS}) >= 150
    assert len(FORMATS) >= 500


def test_the_labels_that_handles_know_are_those_of_the_rules() -> None:
    assert set(SECRET_PROVIDERS) == SCANNER.providers()
    assert list(SECRET_PROVIDERS) == sorted(set(SECRET_PROVIDERS))


def test_a_template_is_read_into_its_parts() -> None:
    literal, drawn, unique = read_template("ab_{x4-6}{g}")
    assert (literal.pattern(), drawn.pattern()) == ("ab_", "[a-f0-9]{4,}")
    assert (drawn.least, drawn.most, unique.most) == (4, 6, 36)


async def test_a_right_checksum_makes_a_finding_surer_and_a_wrong_one_hides_none() -> None:
    kind = next(one for one in FORMATS if one.template.startswith("ghp_"))
    right = kind.example(random.Random(1))
    wrong = right[:-6] + ("000000" if not right.endswith("000000") else "000001")
    assert crc_holds(right) and not crc_holds(wrong)
    [sure], [likely] = (await SCANNER.scan([right, wrong], SecretOptions())).spans
    assert sure.score == 1.0 > likely.score
