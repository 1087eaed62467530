"""Texts of any length that are made to slow a detector down: repeated units and noise."""

import random
from collections.abc import Callable

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def repeated(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def noise(alphabet: str) -> Callable[[int], str]:
    return lambda size: "".join(random.Random(7).choices(alphabet, k=size))


HOSTILE = {
    **{
        unit: repeated(unit)
        for unit in ("1", "1 ", ".", "a.", "@", "a@", "a", "!", "a-", '"', '"a', "a:", "ffff:")
    },
    **{
        unit: repeated(unit)
        for unit in ('"http://a.com/', "AB12 CDEF ", "+1", "(1", "(", "123-45-6789 ", "1,", "1-")
    },
    **{
        unit: repeated(unit)
        for unit in ("212-555-0101 ", "a@b.co ", " ", "\n", "member id abc-", "claim   ", "www.")
    },
    **{
        unit: repeated(unit)
        for unit in ("a\u200b", "a\u0301", "аоеa", "[A_", "[", "John Doe ", "020 7946 0958 ", "x1")
    },
    **{
        unit: repeated(unit)
        for unit in ("4111 ", "password=", "-----BEGIN PRIVATE KEY-----", "eyJ", "dob 1/1/1 ", "１")
    },
    **{
        unit: repeated(unit)
        for unit in (
            "http://a.b/?",
            "0x",
            "%41",
            "&#x0041;",
            "&#0",
            "\\u0041",
            "U+0041 ",
            "[(",
            "(a)",
            "1/",
            "41 ",
        )
    },
    **{
        unit: repeated(unit)
        for unit in ("a_1", "は1", "\x1b[", "\ue0001", "x_at_", "\\34", "aB1 ", "A 1\n", "'a',")
    },
    "base64": noise(LETTERS),
    "hex": noise("0123456789abcdef"),
    "mixed": noise('a1.-@ :/"+()'),
}
