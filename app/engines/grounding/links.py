"""Find links of an answer that the sources do not have, and the links of the sources that were meant."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from app.core.contracts.grounding import AnswerFinding, SourcePlace
from app.engines.grounding.distance import distance
from app.engines.grounding.opposites import OPPOSITES
from app.engines.grounding.stemming import stem

_LINK: Final = re.compile(
    r"\b(?:https?|ftp)://[^\s<>\"`{}|\\^\u201c\u201d]{1,2000}|\bwww\.[^\s<>\"`{}|\\^]{1,2000}", re.IGNORECASE
)
_BARE: Final = re.compile(
    r"(?<![\w@.:/-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?::\d{1,5})?(?:/[^\s<>\"`{}|\\^]{0,2000})?(?![\w@])",
    re.IGNORECASE,
)
_RUN: Final = re.compile(r"[^\s<>\"`{}|\\^]+")
_TRAILING: Final = ".,;:!?*_~'\u2026\u2019"
_CLOSERS: Final = {")": "(", "]": "["}
_TRACKING: Final = re.compile(
    r"utm_\w+|gclid|fbclid|msclkid|dclid|mc_[ce]id|igshid|_ga|_gl|ref_src|yclid|twclid|spm|si", re.IGNORECASE
)
_PORTS: Final = {"http": 80, "https": 443, "ftp": 21}
_PLACEHOLDER: Final = re.compile(
    r"(?:.+\.)?(?:example(?:\.(?:com|org|net))?|test|invalid|localhost|local)|127\.0\.0\.1|0\.0\.0\.0|\[?::1\]?"
)
_DIGITS: Final = re.compile(r"\d+")
_WORDS: Final = re.compile(r"[a-z]+")
_CANDIDATES: Final = 500
_COMPARED: Final = 40
_LONGEST: Final = 400
_MOST_CHANGES: Final = 2
_LONG_PART: Final = 8
_SHORT_HOST: Final = 8
_SHORT_PART: Final = 4


@dataclass(frozen=True, slots=True)
class WrittenLink:
    """A link as written and normalised: host without www and usual port, path without escapes, query sorted."""

    text: str
    start: int
    end: int
    host: str
    path: str
    query: str
    schemed: bool

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what equal links have in common; neither scheme nor fragment count."""
        return self.host, self.path, self.query


def links_in(text: str, *, bare: bool = False) -> Iterator[WrittenLink]:
    """Yield the links of ``text``; ``bare`` adds addresses that are written without a scheme."""
    written = [(match.start(), _trimmed(match[0])) for match in _LINK.finditer(text)]
    if bare:
        covered = {position for start, raw in written for position in (start, start + raw.find("//") + 2)}
        for run in _RUN.finditer(text):
            # Few runs contain an inner dot; without this check the pattern would be tried at every word.
            if "." in run[0].strip("."):
                written += [
                    (match.start(), _trimmed(match[0]))
                    for match in _BARE.finditer(text, *run.span())
                    if match.start() not in covered
                ]
    for start, raw in written:
        link = _read(raw, start)
        if link is not None:
            yield link


def _trimmed(raw: str) -> str:
    """Return a link without the punctuation of the sentence around it, in one pass from its end."""
    raw = raw.partition("](")[0]  # a link whose text is its address, in Markdown
    counts = {char: raw.count(char) for pair in _CLOSERS.items() for char in pair}
    end = len(raw)
    while end:
        last = raw[end - 1]
        unbalanced = last in _CLOSERS and counts[last] > counts[_CLOSERS[last]]
        if not unbalanced and last not in _TRAILING:
            break
        if last in counts:
            counts[last] -= 1
        end -= 1
    # In [text](address) the bracket that closes the target may be followed by more text.
    cut = raw.find(")", 0, end)
    if cut >= 0 and raw.count("(", 0, cut) == 0:
        end = cut
    return raw[:end]


def _read(raw: str, start: int) -> WrittenLink | None:
    schemed = "://" in raw
    try:
        parts = urlsplit(raw if schemed else f"http://{raw}")
        port = parts.port
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    if not host or ("." not in host and host != "localhost" and ":" not in host):
        return None
    if port is not None and port not in _PORTS.values():
        host = f"{host}:{port}"
    path = unquote(parts.path).rstrip("/")
    pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=None)
    query = "&".join(sorted(f"{key}={value}" for key, value in pairs if not _TRACKING.fullmatch(key)))
    return WrittenLink(raw, start, start + len(raw), host, path, query, schemed)


class KnownLinks:
    """The links of the sources, indexed by host and by what follows it."""

    def __init__(self, links: Iterable[tuple[WrittenLink, SourcePlace]]) -> None:
        self.by_key: dict[tuple[str, str, str], SourcePlace] = {}
        self.by_host: dict[str, list[tuple[WrittenLink, SourcePlace]]] = defaultdict(list)
        self.by_rest: dict[tuple[str, str], list[tuple[WrittenLink, SourcePlace]]] = defaultdict(list)
        self.ancestors: set[tuple[str, str]] = set()
        for link, place in links:
            if link.key in self.by_key:
                continue
            self.by_key[link.key] = place
            self._add(link, place)

    def _add(self, link: WrittenLink, place: SourcePlace) -> None:
        for shelf in (self.by_host[link.host], self.by_rest[link.path, link.query]):
            if len(shelf) < _CANDIDATES:
                shelf.append((link, place))
        parts = link.path.split("/")[:_LONG_PART]
        self.ancestors.update((link.host, "/".join(parts[:size])) for size in range(1, len(parts) + 1))

    def nearest(self, link: WrittenLink) -> list[tuple[int, WrittenLink, SourcePlace]]:
        """Return the links of the sources of which ``link`` may be a misspelling, nearest first."""
        near = []
        if len(link.text) > _LONGEST:
            return []
        alike = (
            candidate
            for candidate in self.by_host.get(link.host, ())
            if _may_be(link.path, candidate[0].path)
        )
        for source_link, place in islice(alike, _COMPARED):
            apart = _rest_distance(link, source_link)
            if apart is not None and source_link.schemed:
                near.append((apart, source_link, place))
        for source_link, place in self.by_rest.get((link.path, link.query), ())[:_COMPARED]:
            apart = _host_distance(link.host, source_link.host)
            if apart and source_link.schemed:
                near.append((apart, source_link, place))
        return sorted(near, key=lambda match: (match[0], match[1].text))


def _may_be(path: str, source_path: str) -> bool:
    """Return whether a third of both is equal, as after two changes; far cheaper than counting the changes."""
    size = max(1, min(len(path), len(source_path)) // 3)
    shared = (
        path[:size].lower() == source_path[:size].lower()
        or path[-size:].lower() == source_path[-size:].lower()
    )
    return abs(len(path) - len(source_path)) <= _MOST_CHANGES and (
        shared or path[size : 2 * size - _MOST_CHANGES].lower() in source_path.lower()
    )


def _rest_distance(link: WrittenLink, source_link: WrittenLink) -> int | None:
    """Return the distance of two addresses of one host; None: too far, or a different number or meaning."""
    written, other = f"{link.path}?{link.query}", f"{source_link.path}?{source_link.query}"
    if _DIGITS.findall(written) != _DIGITS.findall(other):
        return None
    longest = max((len(part) for part in source_link.path.split("/")), default=0)
    limit = _MOST_CHANGES if longest >= _LONG_PART else int(longest >= _SHORT_PART)
    apart = distance(written.lower(), other.lower(), limit)
    if apart is None:
        return None
    pairs = zip(_WORDS.findall(written.lower()), _WORDS.findall(other.lower()), strict=False)
    turned = any(stem(source_word) in OPPOSITES.get(stem(word), ()) for word, source_word in pairs)
    return None if turned else max(apart, 1)


def _host_distance(host: str, source_host: str) -> int | None:
    if len(source_host) < _SHORT_HOST or _DIGITS.findall(host) != _DIGITS.findall(source_host):
        return None
    return distance(host, source_host, 2 if len(source_host) >= 2 * _SHORT_HOST else 1)


def check_links(
    text: str, source_links: KnownLinks, may_search: Callable[[], bool]
) -> Iterator[AnswerFinding]:
    """Yield a finding for each link that the sources lack; ``may_search`` bounds the search for the intended one."""
    for link in links_in(text):
        if link.key not in source_links.by_key:
            yield _finding(link, source_links.nearest(link) if may_search() else [], source_links)


def _finding(
    link: WrittenLink, near: Sequence[tuple[int, WrittenLink, SourcePlace]], source_links: KnownLinks
) -> AnswerFinding:
    span = ("url", link.start, link.end)
    if near:
        apart, best, place = near[0]
        if len(near) == 1 or near[1][0] > apart:
            message = "This address is not in the context; one that differs by a letter or two is."
            return AnswerFinding(*span, "high", 0.85, message, place, best.text, (best.text,))
        options = tuple(candidate.text for _, candidate, _ in near[:3])
        message = "This address is not in the context; several that are nearly the same are."
        return AnswerFinding(*span, "high", 0.8, message, place, None, options)
    if _PLACEHOLDER.fullmatch(link.host.partition(":")[0]):
        return AnswerFinding(*span, "low", 0.1, "This address is a placeholder or this machine's own.")
    if not link.query and (link.host, link.path) in source_links.ancestors:
        return AnswerFinding(*span, "low", 0.2, "Only addresses below this one are in the context.")
    if link.host in source_links.by_host:
        place = source_links.by_host[link.host][0][1]
        return AnswerFinding(*span, "medium", 0.65, "The context has this host, but not this address.", place)
    return AnswerFinding(*span, "high", 0.85, "This address is not in the context, nor is its host.")
