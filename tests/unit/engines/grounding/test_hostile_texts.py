"""Texts made to take long: twice the text takes about twice the time, in every check."""

import asyncio

import pytest

from app.core.contracts.engines import Claim
from app.core.contracts.grounding import RULES, CheckOptions
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge
from tests.proportion import assert_in_proportion

SIZE = 24_000
TEXTS = {
    "one word": "word " * (SIZE // 5),
    "no space": "a" * SIZE,
    "digits": "1," * (SIZE // 2),
    "numbers": "".join(f"{number} km " for number in range(SIZE // 8)),
    "dots": "." * SIZE,
    "dotted": "a." * (SIZE // 2),
    "links": "".join(f"https://a{number}.dev/page " for number in range(SIZE // 22)),
    "near links": "".join(
        f"https://docs.example-host.dev/pagina{chr(97 + number % 26)}x{number} "
        for number in range(SIZE // 40)
    ),
    "open link": "https://a.dev/" + "(" * SIZE,
    "closed link": "https://a.dev/" + ")" * SIZE,
    "quotes": '"' * SIZE,
    "quoted": '"all of these words are quoted again" ' * (SIZE // 38),
    "names": "the Alpha Beta Gamma met Delta. " * (SIZE // 32),
    "fences": "```\n" * (SIZE // 4),
    "backticks": "`" * SIZE,
    "brackets": "[" * SIZE,
    "handles": "[PERSON_1" * (SIZE // 9),
    "pip": "pip install " + "a" * SIZE,
    "installs": "pip install " * (SIZE // 12),
    "spaces": "x" + " " * SIZE + "x",
    "apostrophes": "a'" * (SIZE // 2),
    "hyphens": "a-" * (SIZE // 2) + ".",
    "question": "? " * (SIZE // 2),
    "arrows": "> " * (SIZE // 2),
}


def check(text):
    checker = RuleChecker()
    checker._check([text], [text], CheckOptions(frozenset(RULES), {"pypi": frozenset({"requests"})}))
    (stated,) = asyncio.run(checker.statements([text]))
    sentences = [text[start:end] for start, end in stated.sentences][:400]
    LexicalJudge()._scores([Claim(part, (text,)) for part in [stated.prose or "", *sentences]])


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_time_grows_with_the_text_and_no_faster(kind):
    assert_in_proportion(lambda size: check(TEXTS[kind][:size]), SIZE // 4, SIZE)
