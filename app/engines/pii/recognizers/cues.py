# ruff: noqa: RUF001 - dashes as they occur in texts
"""Build patterns of values that only a cue before them identifies: ``MRN: 00123456``, ``"patient_id": "A-99"``.

A cue is a phrase; its blanks match any way in which programs and people join words (``patient id``, ``patient_id``,
``patientId``, ``Patient-ID``). The finding is only the value.
"""

from collections.abc import Iterable

from app.engines.pii.recognizers.patterns import ExactPatterns

_START = r"(?:(?<![^\W_])|(?-i:(?<=[a-z])(?=[A-Z])))"
"""The start of a word, also inside a name that joins words with underscores or capitals."""

_JOIN = r"[\s_.\-/]{0,2}"
_NOUN = (
    r"(?:number|num|nbr|no|nr|id|identifier|code|ref|reference|nummer|numéro|numero|número|núm|n[°º]|#|№)\.?"
)
_CLOSED = r"(?![^\W_])"
_OF = (
    r"of|for|on|in|at|with|from|you|we|i|they|that|which|assigned|issued|listed|provided|used|associated|für|von|des"
    r"|der|de|du|del|della|do|da|voor|van"
)
_SAYS = (
    r"is|was|are|be|reads|shows|equals|ist|war|lautet|est|était|es|era|fue|è|é|foi|ser|luidt|to|as|changed\sto"
    r"|は|が|是|为|為|은|는|이|가|คือ|هو|هي|הוא|היא|है"
)
_SYMBOL = r"[:=#|>;,]|[-–—=~]{1,2}>?|:="
_OPEN = r"[\"'`(\[*<{\\]{0,3}"
_UPTO = r"[^\n.;:=|,]"
_TURN = rf"(?:[:=]|\s(?:{_SAYS})\s)"
_FILLER = rf"(?:\s{{1,2}}(?:{_OF})\s(?={_UPTO}{{1,48}}{_TURN}){_UPTO}{{1,130}}?(?=\s{{0,2}}{_TURN}))?"
"""Text allowed between cue and value, as in "the claim number you asked about is". Its bounds are wider than any match,
so that the single pass over a text searches the cue alone, whose automaton is small."""

_LINK = rf"[\"'`)\]*\\]{{0,4}}{_FILLER}\s{{0,3}}(?:(?:{_SYMBOL}|(?:{_SAYS})(?=\s))\s{{0,3}}){{0,3}}{_OPEN}"
_FIRM = rf"[\"'`)\]*\\]{{0,4}}{_FILLER}\s{{0,3}}(?:(?:{_SYMBOL}|(?:{_SAYS})(?=\s))\s{{0,3}}){{1,3}}{_OPEN}"

NOT_A_DATE = r"(?!(?:19|20)\d\d(?:[-/]\d{1,2}){0,2}(?![\w-])|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}(?!\w))"

NUMBER = (
    rf"{NOT_A_DATE}(?:(?=(?:[A-Z\-/]{{0,6}}\d){{3}})[A-Z0-9](?:[A-Z0-9]|[\-/](?=[A-Z0-9])){{3,24}}"
    r"|\d{2,6}(?:\s\d{2,6}){1,5})"
)
"""Numbers that organizations assign to people: at least three digits, with letters and dashes; or digit groups."""

LETTERED = (
    r"(?!(?:CVE|RFC|ISO|IEC|IEEE|DIN|PCI|SHA|AES|UTF|ISBN|ISSN|RSA|HTTP|FIPS|NIST|SOC)(?![A-Z]))"
    r"(?-i:[A-Z]{1,5})-?(?=[\dA-Z\-]{0,4}\d{4}|\d{3}-\d{3})[0-9](?:[A-Z0-9]|-(?=[A-Z0-9])){3,16}"
)
"""A number that begins with letters, so that a noun before it is enough: ``policy POL-0017180``."""

DIGITS = r"\d(?:[ \-]?\d){5,27}"


def cued(cues: Iterable[str], value: str, *, noun: bool = False, firm: bool = False) -> str:
    """Return the pattern of ``value`` after one of ``cues``.

    ``noun`` requires "number", "id" or the like after the cue; ``firm`` requires a symbol or a verb before the value.
    """
    phrases = "|".join(sorted((_joined(cue) for cue in cues), key=len, reverse=True))
    # Match as few nouns as possible: a number may itself begin with one, as in "record no. NR-42552".
    after = rf"(?:{_JOIN}{_NOUN}){{1,2}}?{_JOIN}" if noun else rf"(?:{_JOIN}{_NOUN}){{0,2}}?"
    link = _FIRM if firm else _LINK
    return rf"{_START}(?:{phrases}){after}{_CLOSED}{link}(?<![^\W_])(?P<value>{value})(?![\w])(?!\.\d|-\w)"


def _joined(cue: str) -> str:
    return _JOIN.join(cue.split(" "))


class CuedRecognizer(ExactPatterns):
    """Find values of one entity by the cue before them."""

    def __init__(self, name: str, entity: str, patterns: Iterable[tuple[str, float]]) -> None:
        super().__init__(entity, patterns)
        self.name = name
