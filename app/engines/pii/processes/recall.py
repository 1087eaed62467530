"""Answer one detection from the cache: decide which texts to scan, and in which texts to look for which names.

The result is the same as for a scan of everything, whatever is cached: a text's own findings depend on the text and the
options (they form its key), and only the names relevant to a text change what is carried to it (see `Names`).
"""

import secrets
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Any, NamedTuple

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.names.carrying import carried, carries
from app.engines.pii.names.names import Names, name_at, sure_people
from app.engines.pii.processes import frames, packing
from app.engines.pii.processes.cache import SpanCache, Stored

Run = tuple[int, ...]
"""Positions of adjacent texts that are scanned as one; mostly a single position."""

_DIGEST = 16
_ID = 8
_NONE = b""
_BLOB = 262_144


def runs_of(count: int, joined: Sequence[Sequence[int]]) -> list[Run]:
    """Group ``count`` texts into runs: the groups of ``joined``, merged if they share texts; all others alone."""
    runs = {place: {place} for place in range(count)}
    for group in joined:
        together = set().union(*(runs[place] for place in group))
        runs |= dict.fromkeys(together, together)
    # The places of a run share one set. Sorted for each of its places, a run of thousands would take seconds.
    return sorted(tuple(sorted(run)) for run in {id(run): run for run in runs.values()}.values())


class Remembered(NamedTuple):
    """The cached facts about a text; every part is bytes, none contains a part of a text.

    ``own``: its own findings; ``people``: the places of its certain names; ``evidence``: of its language; ``names``:
    the digest of the names searched in it, ``relevant``: the ids of those that matter; ``carried``: the findings
    including these names, None: the same as ``own``.
    """

    own: bytes
    people: bytes
    evidence: bytes
    names: bytes
    relevant: bytes
    carried: bytes | None


class Memory:
    """The cache, and the secret key of this process, without which its digests are meaningless."""

    def __init__(self, capacity: int) -> None:
        self.cache = SpanCache(capacity)
        self._key = secrets.token_bytes(64)

    def key_for(self, tenant: str, options: frames.Frame, version: bytes) -> bytes:
        """Return the digest key for a tenant, options and a version of the engine."""
        context = repr((tenant, options, version)).encode("utf-8", "backslashreplace")
        return blake2b(context, key=self._key, digest_size=64).digest()


class Keys:
    """Compute digests under one key."""

    def __init__(self, key: bytes) -> None:
        self._text = blake2b(key=key, digest_size=_DIGEST, person=b"text")
        self._run = blake2b(key=key, digest_size=_DIGEST, person=b"run")
        self._names = blake2b(key=key, digest_size=_DIGEST, person=b"names")
        self._name = blake2b(key=key, digest_size=_ID, person=b"name")

    def of_texts(self, texts: Sequence[str], runs: Iterable[Run]) -> list[bytes]:
        """Return the key of each text, which in a run depends on all texts of the run."""
        keys = [_digest(self._text, text) for text in texts]
        for run in runs:
            if len(run) > 1:
                whole = self._run.copy()
                whole.update(b"".join([keys[place] for place in run]))
                for number, place in enumerate(run):
                    digest = self._run.copy()
                    digest.update(number.to_bytes(4, "big") + whole.digest())
                    keys[place] = digest.digest()
        return keys

    def of_names(self, names: Sequence[str]) -> bytes:
        """Return the digest of sorted names; without names it is empty."""
        return _digest(self._names, "\n".join(names)) if names else _NONE

    def id_of(self, name: str) -> bytes:
        """Return the short digest that identifies a name."""
        return _digest(self._name, name)


def _digest(empty: Any, text: str) -> bytes:
    digest = empty.copy()
    digest.update(text.encode("utf-8", "surrogatepass"))
    value: bytes = digest.digest()
    return value


class Recall:
    """The texts of one call, what the cache knows about them, and the work that is left."""

    def __init__(
        self,
        cache: SpanCache | None,
        tenant: str,
        texts: Sequence[str],
        options: DetectionOptions,
        keys: Keys,
        runs: Sequence[Run],
        keyed: Sequence[bytes],
    ) -> None:
        self._cache = cache
        self._tenant = tenant
        self._texts = texts
        self._options = options
        self._keys = keys
        self._runs = runs
        self._keyed = keyed
        self._carries = carries(options)
        self._places = {keyed[place]: place for place in reversed(range(len(texts))) if texts[place]}
        self._entries: dict[bytes, Remembered] = {}
        self.stale: list[int] = []
        if cache is not None:
            for key in self._places:
                entry = cache.get(tenant, key)
                if entry is not None:
                    self._entries[key] = _remembered_from(entry)
            cache.hits += len(self._entries)
            cache.misses += len(self._places) - len(self._entries)

    def unseen(self) -> list[Run]:
        """Return the runs that must be scanned; each once, however often it occurs."""
        wanted = {
            tuple(self._keyed[place] for place in run): run
            for run in reversed(self._runs)
            if any(self._texts[place] and self._keyed[place] not in self._entries for place in run)
        }
        return sorted(wanted.values())

    def names(self) -> list[str]:
        """Return the names to look for in all texts, from every text whose findings are known."""
        if not self._carries:
            return []
        names = (
            name_at(self._texts[place], start, end)
            for key, place in self._places.items()
            if key in self._entries
            for start, end in packing.ranges_from(self._entries[key].people)
        )
        return sorted(set(names))

    def learn(self, runs: Iterable[Run], answer: frames.Frame) -> None:
        """Store the answer to a scan of ``runs``."""
        names = answer["names"] if self._carries else []
        digest, ids = self._digest_and_ids(names)
        places = [place for run in runs for place in run]
        for place, result in zip(places, answer["texts"], strict=True):
            people = sure_people(self._texts[place], result["spans"]) if self._carries else ()
            entry = Remembered(
                own=packing.packed_spans(result["spans"]),
                people=packing.packed_ranges(people),
                evidence=packing.packed_counts(result["evidence"]),
                names=digest,
                relevant=b"".join(ids[number] for number in result["relevant"]),
                carried=_packed(result["carried"]),
            )
            self._keep(self._keyed[place], entry)

    def search(self, names: Sequence[str]) -> Iterator[None]:
        """Add the texts in which ``names`` (sorted) change the findings to `stale`; yield now and then.

        Names that were searched before are not searched again, unless a name that matters is gone.
        """
        digest = self._keys.of_names(names)
        groups: dict[bytes, list[bytes]] = {}
        for key, entry in self._entries.items():
            if entry.names != digest:
                groups.setdefault(entry.names, []).append(key)
        if not groups:
            return
        _, ids = self._digest_and_ids(names)
        names_by_id = dict(zip(ids, names, strict=True))
        for searched, keys in groups.items():
            before = self._ids(searched)
            new = Names(name for id_, name in names_by_id.items() if id_ not in before)
            for part in self._parts(keys):
                yield from self._separate_stale(part, list(new.opening), names_by_id.keys(), digest)

    def carry(self, names: Sequence[str]) -> None:
        """Look for ``names`` in the stale texts in this process."""
        prepared = Names(names)
        answers = []
        for place in self.stale:
            own = packing.spans_from(self._entries[self._keyed[place]].own)
            spans, relevant = carried(self._texts[place], own, prepared, self._options)
            answers.append(
                {"carried": None if spans is None else frames.raw_spans(spans), "relevant": relevant}
            )
        self.take_carried(self.stale, names, answers)

    def own_spans(self, place: int) -> list[frames.RawSpan]:
        """Return a text's own findings."""
        return packing.raw_spans(self._entries[self._keyed[place]].own)

    def take_carried(
        self, places: Sequence[int], names: Sequence[str], answers: Iterable[frames.Frame]
    ) -> None:
        """Store the results of the search for ``names`` in the texts at ``places``."""
        digest, ids = self._digest_and_ids(names)
        for place, result in zip(places, answers, strict=True):
            key = self._keyed[place]
            relevant = b"".join(ids[number] for number in result["relevant"])
            entry = self._entries[key]
            self._keep(
                key, entry._replace(names=digest, relevant=relevant, carried=_packed(result["carried"]))
            )

    def forget(self) -> None:
        """Stop caching what is learnt from now on: it comes from another version of the engine."""
        self._cache = None

    def spans(self) -> list[list[Span]]:
        """Return the findings in each text."""
        entries = (
            self._entries[key] if text else None for key, text in zip(self._keyed, self._texts, strict=True)
        )
        return [
            packing.spans_from(entry.own if entry.carried is None else entry.carried) if entry else []
            for entry in entries
        ]

    def evidence(self) -> list[dict[str, int]]:
        """Return the evidence of language of each text that has some."""
        entries = (self._entries[key] for key, text in zip(self._keyed, self._texts, strict=True) if text)
        return [packing.counts_from(entry.evidence) for entry in entries if entry.evidence]

    def _parts(self, keys: Iterable[bytes]) -> Iterator[list[bytes]]:
        """Yield ``keys`` in lists whose texts are searched together."""
        part: list[bytes] = []
        size = 0
        for key in keys:
            part.append(key)
            size += len(self._texts[self._places[key]])
            if size > _BLOB:
                yield part
                part, size = [], 0
        if part:
            yield part

    def _separate_stale(
        self, part: list[bytes], words: Sequence[str], ids: AbstractSet[bytes], digest: bytes
    ) -> Iterator[None]:
        """Mark the texts without any of ``words`` and without a lost name as up to date; the others are stale."""
        together = "\n".join([self._texts[self._places[key]] for key in part])
        met = []
        for word in words:
            if word in together:
                met.append(word)
            yield
        for key in part:
            entry, text = self._entries[key], self._texts[self._places[key]]
            if not any(word in text for word in met) and _split(entry.relevant) <= ids:
                self._keep(key, entry._replace(names=digest))
            else:
                self.stale.append(self._places[key])
            yield

    def _digest_and_ids(self, names: Sequence[str]) -> tuple[bytes, list[bytes]]:
        """Return the digest of ``names`` and their ids, and cache the ids."""
        digest = self._keys.of_names(sorted(names))
        ids = [self._keys.id_of(name) for name in names]
        if self._cache is not None and ids:
            self._cache.put(self._tenant, digest, (b"".join(ids),))
        return digest, ids

    def _ids(self, digest: bytes) -> frozenset[bytes]:
        """Return the ids of the names of a digest; none if they were evicted, which only costs time."""
        entry = self._cache.get(self._tenant, digest) if self._cache is not None and digest else None
        return _split(entry[0] or _NONE) if entry is not None else frozenset()

    def _keep(self, key: bytes, entry: Remembered) -> None:
        self._entries[key] = entry
        if self._cache is not None:
            self._cache.put(self._tenant, key, tuple(entry))


def _remembered_from(entry: Stored) -> Remembered:
    own, people, evidence, names, relevant, with_names = entry
    return Remembered(
        own or _NONE, people or _NONE, evidence or _NONE, names or _NONE, relevant or _NONE, with_names
    )


def _packed(spans: list[frames.RawSpan] | None) -> bytes | None:
    return None if spans is None else packing.packed_spans(spans)


def _split(ids: bytes) -> frozenset[bytes]:
    return frozenset(ids[place : place + _ID] for place in range(0, len(ids), _ID))
