"""Shorten a description to its first sentence, for progressive disclosure of tools without a short description."""

import re
import unicodedata
from typing import Final

MAX_SUMMARY: Final = 160
_ELLIPSIS: Final = "…"
_SCANNED_CHARACTERS: Final = 1024
_CLOSING: Final = "\"'\u201d\u2019\u00bb)]`*_"
_OPENING: Final = "([{\"'\u201c\u2018\u00ab*_`"
_DASHES: Final = "-\u2013\u2014"
_WIDE_STOPS: Final = "\u3002\uff01\uff1f"
_ABBREVIATIONS: Final = frozenset(
    re.findall(
        r"\S+",
        """approx art ca cf dept dr e.g eg eq est ext fig figs gen i.e ie incl max min mr mrs ms nos op par pp prof
        ref refs resp sec sr st var viz vol vs z.b d.h u.a bzw ggf p.ex""",
    )
)
_ABBREVIATIONS_OFTEN_LAST: Final = frozenset(("al", "co", "corp", "etc", "inc", "jr", "ltd", "no", "usw"))
_SECTION: Final = re.compile(
    r"(?:[-*+•\u2013]\s|\d{1,3}[.)]\s|#|```|~~~|\||>|[@:](?:param|arg|return|type|example)|[{\[<]"
    r"|(?:args|arguments|params|parameters|inputs?|outputs?|returns?|raises|examples?|usage|notes?|warnings?|"
    r"important|options|fields|schema|json schema|input schema|how to use|instructions)\b[^.:]{0,40}:"
    r"|[A-Z][\w /-]{0,40}:\s*$)",
    re.IGNORECASE,
)
_LEADING_MARKS: Final = re.compile(r"^(?:#{1,6}\s+|[-*+•]\s+|\d{1,3}[.)]\s+|>\s+)+")
_EMPHASIS: Final = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_SENTENCE_END: Final = re.compile(rf"[.!?]+|[{_WIDE_STOPS}]+")
_NAME_WORDS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")


def summary(text: str) -> str | None:
    """Return the first sentence of ``text``, at most MAX_SUMMARY characters, or None if there is none.

    Lists, code, headed sections ("Args:", "Example:") and everything after them are ignored.
    """
    opening = _first_paragraph(text[:_SCANNED_CHARACTERS])
    sentence = _first_sentence(opening)
    if not sentence or not any(character.isalnum() for character in sentence):
        return None
    return _shortened(sentence)


def spoken_name(name: str) -> str:
    """Return a tool's name as words: ``files__readTextFile`` becomes "Read text file"."""
    own = name.rpartition("__")[2] or name
    words = [word if word.isupper() and len(word) > 1 else word.lower() for word in _NAME_WORDS.findall(own)]
    phrase = " ".join(words) or name
    return _shortened(phrase[:1].upper() + phrase[1:])


def _first_paragraph(text: str) -> str:
    """Return the first paragraph as one line, without Markdown marks of lists, headings and emphasis."""
    lines: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if not lines:
            heading = stripped.startswith("#")
            stripped = _LEADING_MARKS.sub("", stripped).strip()
            if not stripped:
                continue
            if _SECTION.match(stripped):
                break
            lines.append(stripped)
            if heading:
                break
        elif not stripped or _SECTION.match(stripped) or set(stripped) <= set("=-"):
            break
        else:
            lines.append(stripped)
    return _EMPHASIS.sub(r"\2", " ".join(" ".join(lines).split()))


def _first_sentence(text: str) -> str:
    for stop in _SENTENCE_END.finditer(text):
        end = stop.end()
        while end < len(text) and text[end] in _CLOSING:
            end += 1
        if stop[0][0] in _WIDE_STOPS or end == len(text):
            return text[:end]
        if text[end] == " " and not _continues(text, stop, text[end + 1]):
            return text[:end]
    return text


def _continues(text: str, stop: re.Match[str], following: str) -> bool:
    """Return whether a full stop belongs to an abbreviation or an ellipsis inside the sentence."""
    if stop[0] != ".":
        return stop[0].startswith("..") and following.islower()
    word = text[: stop.start()].rpartition(" ")[2].lstrip(_OPENING).lower()
    if word in _ABBREVIATIONS or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):
        return True
    if len(word) == 1 and word.isalpha():  # an initial, as in "J. Smith"
        return following.isupper()
    return word in _ABBREVIATIONS_OFTEN_LAST and not following.isupper()


def _shortened(text: str) -> str:
    """Return ``text``; if it is too long, cut it between words and add an ellipsis."""
    if len(text) <= MAX_SUMMARY:
        return text
    room = MAX_SUMMARY - len(_ELLIPSIS)
    cut = text.rfind(" ", 0, room + 1)
    if cut <= 0:  # one word, or a script without spaces: do not cut inside a character of several code points
        cut = room
        while cut > 1 and (unicodedata.combining(text[cut]) or text[cut] in "\u200d\ufe0f"):
            cut -= 1
        if text[cut - 1] == "\u200d":
            cut -= 1
        return text[:cut] + _ELLIPSIS
    words = text[:cut].split(" ")
    while len(words) > 1 and _cannot_end(words[-1]):
        words.pop()
    return " ".join(words).rstrip(",;:([{ " + _DASHES) + _ELLIPSIS


def _cannot_end(word: str) -> bool:
    """Return whether a shortened text must not end with this word, which only introduces the next one."""
    plain = word.lstrip(_OPENING)
    return not plain or (plain.endswith(".") and plain.rstrip(".").lower() in _ABBREVIATIONS)
