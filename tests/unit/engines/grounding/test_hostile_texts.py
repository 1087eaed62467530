"""Texts made to take long: twice the text takes about twice the time, in every check."""

import time

import pytest

from app.core.contracts.engines import Claim
from app.core.contracts.grounding import RULES, CheckOptions
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge

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


async def seconds(answer, source):
    begun = time.thread_time()
    checker = RuleChecker()
    checker._check([answer], [source], CheckOptions(frozenset(RULES), {"pypi": frozenset({"requests"})}))
    (stated,) = await checker.statements([answer])
    sentences = [answer[start:end] for start, end in stated.sentences][:400]
    LexicalJudge()._scores([Claim(text, (source,)) for text in [stated.prose or "", *sentences]])
    return time.thread_time() - begun


@pytest.mark.parametrize("kind", sorted(TEXTS))
async def test_time_grows_with_the_text_and_no_faster(kind):
    text = TEXTS[kind]
    half = text[: len(text) // 2]
    await seconds(text[:200], text[:200])
    for _ in range(6):  # a neighbour on the machine may disturb one measurement
        small = min([await seconds(half, half) for _ in range(2)])
        large = min([await seconds(text, text) for _ in range(2)])
        if large <= 3 * small + 0.02:
            return
    raise AssertionError(f"{small:.3f} s for half of it, {large:.3f} s for all")
