"""Draws passwords and seed phrases for the test part of secrets."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from typing import Final

_PLACES: Final = ("Rotterdam", "quokka", "Helsinki", "magnolia", "turnip", "Valparaiso", "gondola", "basalt")
_SIGNS: Final = "!?#$%&*+=."
_MIXED: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789!?#%*+=-_"
WORDS_OF_SEEDS: Final = (12, 15, 18, 21, 24)
_BITS: Final = 11


def password(draw: random.Random) -> str:
    """Return what a person chooses, or what a machine draws."""
    kind = draw.randrange(4)
    if kind == 0:
        return f"{draw.choice(_PLACES)}{draw.randint(10, 2030)}{draw.choice(_SIGNS[:3])}"
    if kind == 1:
        return f"{draw.choice(_PLACES)}-{draw.choice(_PLACES)}-{draw.randint(2, 99)}"
    if kind == 2:
        word = draw.choice(_PLACES)
        return word.replace("o", "0").replace("a", "4").replace("i", "1") + draw.choice(_SIGNS[4:]) + "x7"
    drawn = "".join(draw.choices(_MIXED, k=draw.randint(10, 18)))
    return f"{draw.choice('aBcDeF')}{draw.randint(2, 9)}{drawn}"


def seed_phrase(draw: random.Random, words: Sequence[str], size: int) -> list[str]:
    """Return a phrase with the right checksum, as BIP-39 says: entropy, then its hash's first bits."""
    check = size * _BITS // 33
    entropy = draw.randbytes((size * _BITS - check) // 8)
    digest = hashlib.sha256(entropy).digest()[0] >> (8 - check)
    number = int.from_bytes(entropy, "big") << check | digest
    return [words[number >> _BITS * place & 2047] for place in reversed(range(size))]


def spelled_phrases(phrase: Sequence[str]) -> Iterator[str]:
    """Yield a phrase as people write it down."""
    yield " ".join(phrase)
    yield ", ".join(phrase)
    yield " ".join(f"{number}. {word}" for number, word in enumerate(phrase, 1))
    yield "\n".join(f"{number}. {word}" for number, word in enumerate(phrase, 1))
    yield "\n".join(phrase)
    yield " ".join(phrase).upper()
