"""Find seed phrases of wallets: 12 to 24 words of the list of BIP-39, whose last bits are a checksum."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from app.engines.secrets.spotting import SecretRule, Spot, compiled

PROVIDER: Final = "seed_phrase"
LABEL: Final = "SECRET_SEED_PHRASE"
_SIZES: Final = (24, 21, 18, 15, 12)
_BITS: Final = 11
_BETWEEN: Final = r"(?:[\s,;|*\-]{1,4}|\\n)(?:[0-9]{1,2}[.):]?[ \t]{0,2})?"
_RUN: Final = (
    rf"(?:[a-z]{{3,8}}{_BETWEEN}){{11,40}}[a-z]{{3,8}}\b|(?:[A-Z]{{3,8}}{_BETWEEN}){{11,40}}[A-Z]{{3,8}}\b"
)
_WORD: Final = re.compile(rb"[a-z]+|[A-Z]+")
_BROKEN: Final = re.compile(rb"(?<=\\)n")
_CUE: Final = re.compile(
    rb"(?i)seed|mnemonic|recovery|wallet|phrase|backup|wiederherstell|semilla|recupera|recupero|herstel|cl\?"
)
_NEAR: Final = 80
_REPEATED: Final = 3


def seed_words() -> list[str]:
    """Return the English list of BIP-39 in its order; nearly all wallets use it."""
    raw = Path(__file__).with_name("seed_words.json").read_text(encoding="utf-8")
    return str(json.loads(raw)["words"]).split()


@cache
def _numbers() -> dict[bytes, int]:
    return {word.encode(): number for number, word in enumerate(seed_words())}


def seed_spots(data: bytes) -> Iterator[Spot]:
    """Yield the seed phrases of an ASCII text; only runs of short words of one case are looked at."""
    at = 0
    while (run := compiled(_RUN).search(data, at)) is not None:
        at = run.end()
        yield from _phrases(data, run.start(), run.end())


def _phrases(data: bytes, start: int, end: int) -> Iterator[Spot]:
    """Yield the phrases in a run: where its words are of the list, and the checksum or a word before it says so."""
    numbers = _numbers()
    listed: list[tuple[int, int, int]] = []
    for word in _WORD.finditer(data, start, end):
        number = numbers.get(word[0].lower())
        if number is not None:
            listed.append((number, *word.span()))
            continue
        if _BROKEN.match(data, word.start()) is None:
            yield from _in_row(data, listed)
            listed = []
    yield from _in_row(data, listed)


def _in_row(data: bytes, listed: Sequence[tuple[int, int, int]]) -> Iterator[Spot]:
    if len(listed) < _SIZES[-1]:
        return
    if _CUE.search(data, max(0, listed[0][1] - _NEAR), listed[0][1]) and len(listed) <= _SIZES[0]:
        yield Spot(listed[0][1], listed[-1][2], LABEL, 0.9)
        return
    for size in _SIZES:
        for first in range(len(listed) - size + 1):
            phrase = listed[first : first + size]
            if _holds([number for number, _, _ in phrase]):
                yield Spot(phrase[0][1], phrase[-1][2], LABEL, 1.0)
                return


def _holds(numbers: Sequence[int]) -> bool:
    """Return whether the last bits are those of the hash of the others (BIP-39), and words hardly repeat."""
    if len(set(numbers)) < len(numbers) - _REPEATED:
        return False
    check = len(numbers) * _BITS // 33
    whole = 0
    for number in numbers:
        whole = whole << _BITS | number
    entropy = (whole >> check).to_bytes((len(numbers) * _BITS - check) // 8, "big")
    return hashlib.sha256(entropy).digest()[0] >> (8 - check) == whole & ((1 << check) - 1)


def _no_spot(_data: bytes, _at: int) -> None:
    """Find nothing: phrases have no keyword, so that `seed_spots` looks through whole texts."""


SEED_PHRASES: Final = SecretRule(PROVIDER, "\0seed phrase\0", _no_spot)
"""The rule by which a caller asks for seed phrases, or leaves them out; its keyword is in no text."""
