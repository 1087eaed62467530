"""The cheap look at the words of a text passes over nothing that the patterns would find."""

import re

import pytest

from app.core.content import active_commands
from app.core.content.active_commands import TextWords
from tests.patterns import examples_of
from tests.restoration_attacks import ORDINARY, attacks
from tests.sampling import WHOLE, sample

PATTERNS = {
    "command": active_commands._COMMAND_BEGIN,
    "call": active_commands._CALL_BEGIN,
    "output": active_commands._OUTPUT,
}
BORDERS = (" ", "\n", "(", "\t", "a", "\u0345", "\u0307", "\u00e9")
PROSE = (
    "The quick brown fox (who jumps) over 3 lazy dogs - it's \u201cfine\u201d, at 50% + more; see e.g. A/B.\n"
    * 3
)


@pytest.mark.parametrize("kind", PATTERNS)
def test_whatever_a_pattern_finds_is_among_the_words(kind: str) -> None:
    matched = [text for text in examples_of(PATTERNS[kind]) if PATTERNS[kind].search(text)]
    assert len(matched) > 30
    for text in matched:
        for whole in (text, text.upper(), *(border + text for border in BORDERS), text + PROSE):
            if PATTERNS[kind].search(whole):
                assert getattr(TextWords(whole), kind), whole


def test_no_attack_is_passed_over() -> None:
    everything = [attack.text for attack in attacks()]
    matched = dict.fromkeys(PATTERNS, 0)
    for text in everything if WHOLE else sample("words of attacks", everything, 60):
        before = text[: text.find("[")] if "[" in text else text
        for part in (text, before.upper()):
            words = TextWords(part)
            for kind, pattern in PATTERNS.items():
                if pattern.search(part):
                    matched[kind] += 1
                    assert getattr(words, kind), part
    assert min(matched.values()) > 0 and sum(matched.values()) > 20


def test_letters_that_only_the_patterns_take_for_ascii_count() -> None:
    every = (letter for letter in map(chr, range(0x80, 0x110000)) if not letter.isascii())
    letters = [letter for letter in every if re.fullmatch("[a-z]", letter, re.IGNORECASE)]
    assert len(letters) >= 4
    forms = {"command": ("cur{} -d ", "ba{} -c '", "{}url "), "call": ("reque{}ts.get(", "{}mage(")}
    for kind, texts in forms.items():
        assert all(getattr(TextWords(text.format(letter)), kind) for text in texts for letter in letters)


def test_ordinary_text_needs_no_pattern() -> None:
    """Negative control: the look says no where there is nothing, else it would save nothing."""
    words = TextWords(PROSE)
    assert not (words.command or words.call or words.output)
    quiet = [text for text in ORDINARY if not (TextWords(text).command or TextWords(text).call)]
    assert len(quiet) > len(ORDINARY) / 3
