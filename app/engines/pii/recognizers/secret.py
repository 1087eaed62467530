"""Recognize a few unmistakable forms of secrets: cloud and service keys, private keys, tokens, assigned passwords."""

import re

from app.engines.pii.recognizers.patterns import ExactPatterns

_EDGE = r"(?<![A-Za-z0-9_\-])"
_NAMED = (
    r"pass(?:word|wd|phrase|code)|pwd|secret(?:[_\- ]?key)?|client[_\- ]secret|api[_\- ]?key"
    r"|access[_\- ]?(?:key|token)|auth[_\- ]?token|private[_\- ]?key|token"
)
_ASSIGNED = r"[\"']?\s{0,3}(?:[:=]|is\s)\s{0,3}(?:bearer\s)?[\"']?"
_PATTERNS = (
    (rf"{_EDGE}(?-i:(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA)[0-9A-Z]{{16}})(?![0-9A-Za-z])", 0.95),
    (rf"{_EDGE}(?-i:sk-(?:ant-|proj-|live-|test-)?[A-Za-z0-9_\-]{{20,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{{16,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:gh[pousr]_[A-Za-z0-9]{{30,256}}+|github_pat_[A-Za-z0-9_]{{30,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:glpat-[A-Za-z0-9_\-]{{16,256}}+|xox[abeoprs]-[A-Za-z0-9\-]{{10,256}}+)", 0.95),
    (rf"{_EDGE}(?-i:AIza[A-Za-z0-9_\-]{{35}}|npm_[A-Za-z0-9]{{36}})(?![A-Za-z0-9_\-])", 0.95),
    (rf"(?<![A-Za-z0-9])(?:{_NAMED}){_ASSIGNED}(?P<value>[^\s\"'<>,;]{{4,512}}+)", 0.6),
    (r"(?<![A-Za-z0-9])bearer\s{1,3}(?P<value>[A-Za-z0-9._~+/\-]{16,4096}+=*)", 0.7),
    (r"(?<![A-Za-z0-9])[a-z][a-z0-9+.\-]{1,20}://[^\s/:@\"']{0,64}:(?P<value>[^\s/@\"']{1,256})@", 0.8),
)
_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY = 16_384
_WEB_TOKEN = re.compile(
    r"eyJ(?<![A-Za-z0-9_\-]eyJ)[A-Za-z0-9_\-]{8,8192}+\.[A-Za-z0-9_\-]{8,32768}+\.[A-Za-z0-9_\-]{0,4096}+"
)


def long_secrets(text: str) -> list[tuple[int, int]]:
    """Return the places of secrets that may be longer than a chunk: JSON web tokens, private keys in PEM.

    A key without an end marker extends to the maximum length of a key.
    """
    places = [match.span() for match in _WEB_TOKEN.finditer(text)]
    position = 0
    while begin := _BEGIN.search(text, position):
        end = _END.search(text, begin.end(), begin.end() + _LONGEST_KEY)
        position = end.end() if end else min(len(text), begin.end() + _LONGEST_KEY)
        places.append((begin.start(), position))
    return places


class SecretRecognizer(ExactPatterns):
    """Find secrets of one line; the finding in an assignment is only the value."""

    needs_digit = False

    def __init__(self) -> None:
        super().__init__("SECRET", _PATTERNS)
