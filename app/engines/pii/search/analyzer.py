"""Find personal data in texts: recognizers and tagger, views against disguise, lists, names carried on."""

from collections.abc import Iterable, Sequence

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.ground.labels import CUSTOM, OPAQUE, thresholds
from app.engines.pii.ground.lists import AllowList, denied
from app.engines.pii.ground.spans import blanked, handles, opaque_runs, resolved, without
from app.engines.pii.names.carrying import carry, names_in
from app.engines.pii.names.nlp import NameTagger
from app.engines.pii.recognizers.secret import long_secrets
from app.engines.pii.recognizers.user import Definitions
from app.engines.pii.scan.matchers import MatcherName
from app.engines.pii.search.searching import Finding, Search
from app.engines.views.mapping import TextView
from app.engines.views.reading import readings
from app.engines.views.tables import table_view


class Analyzer:
    """All that finds personal data in one process; not for use by two threads at once."""

    def __init__(
        self,
        tagger: NameTagger | None = None,
        matcher: MatcherName = "auto",
        database: bytes | None = None,
        definitions: Definitions | None = None,
    ) -> None:
        self._search = Search(tagger, matcher, database, definitions)

    def serialized(self) -> bytes | None:
        """Return the compiled patterns for another process; None where the matcher compiles nothing."""
        return self._search.serialized()

    def analyze(self, text: str, options: DetectionOptions) -> list[Span]:
        """Return the findings in one text: sorted, free of overlaps."""
        return self.analyze_all([text], options)[0]

    def analyze_all(self, texts: Sequence[str], options: DetectionOptions) -> list[list[Span]]:
        """Return the findings in each text of one context; a name found in one is found in all."""
        found = [self.scan(text, options) for text in texts]
        return carry(texts, found, names_in(texts, found), options)

    def scan(self, text: str, options: DetectionOptions) -> list[Span]:
        """Return the findings in ``text`` alone."""
        own = handles(text)
        seen = blanked(text, own) if own else text
        found = list(self.candidates(seen, options))
        allowed = AllowList(options.allow_list)
        spans = (Span(one.start, one.end, one.label, one.score) for one in found)
        kept = [span for span in spans if span.label == CUSTOM or not allowed.holds(text, span)]
        return resolved(text, without(kept, own))

    def candidates(self, seen: str, options: DetectionOptions) -> Iterable[Finding]:
        """Yield all that is found in ``seen``, whichever way it is read, before overlaps and the allow list."""
        plain = list(self._search.findings(seen, options))
        yield from plain
        yield from self._runs(seen, options)
        yield from _listed(seen, options)
        other, table = readings(seen), table_view(seen)
        known = {(one.start, one.end, one.label) for one in plain} if other.views else set()
        if table is not None:
            yield from self._tabled(seen, table, options)
        for view in other.views:
            yield from self._viewed(view, options, known)
        if OPAQUE in thresholds(options):
            yield from (
                Finding(start, end, OPAQUE, 1.0, OPAQUE, view="encoded") for start, end in other.sealed
            )

    def considered(self, text: str, options: DetectionOptions) -> Iterable[Finding]:
        """Yield all that recognizers and tagger make of ``text`` as it stands, whatever its type and score."""
        return self._search.considered(text, options)

    def context_words(self, found: Finding) -> Sequence[str]:
        """Return the words that raise the score of ``found``."""
        return self._search.context_words(found)

    def _tabled(self, seen: str, table: TextView, options: DetectionOptions) -> Iterable[Finding]:
        """Yield what the cells of tables show behind the heads of their columns; nothing that takes in a head."""
        ways = table.ways
        for one in self._search.findings(table.text, options, list(table.windows())):
            start, end = table.original_span(one.start, one.end)
            if seen[start:end] == table.text[one.start : one.end]:
                yield one._replace(start=start, end=end, view=ways)

    def _viewed(
        self, view: TextView, options: DetectionOptions, known: set[tuple[int, int, str]]
    ) -> Iterable[Finding]:
        """Yield what one view shows, at its place in the original; not what is ``known`` and stands there as it is."""
        allowed, ways = AllowList(options.allow_list), view.ways
        found = [
            *self._search.findings(view.text, options, list(view.windows())),
            *_listed(view.text, options),
        ]
        for one in (*found, *self._runs(view.text, options)):
            span = Span(one.start, one.end, one.label, one.score)
            if one.label != CUSTOM and allowed.holds(view.text, span):
                continue
            start, end = view.original_span(one.start, one.end)
            way = view.way(one.start, one.end)
            if way or (start, end, one.label) not in known:
                yield one._replace(start=start, end=end, view=way or ways)

    @staticmethod
    def _runs(seen: str, options: DetectionOptions) -> Iterable[Finding]:
        """Yield what is too long to be scanned as words, and secrets of many lines."""
        least = thresholds(options)
        if OPAQUE in least:
            yield from (Finding(start, end, OPAQUE, 1.0, OPAQUE) for start, end in opaque_runs(seen))
        if "SECRET" in least:
            yield from (Finding(start, end, "SECRET", 1.0, "SECRET") for start, end in long_secrets(seen))


def _listed(text: str, options: DetectionOptions) -> Iterable[Finding]:
    """Yield what the deny list names."""
    return (
        Finding(span.start, span.end, span.label, span.score, CUSTOM, "deny_list")
        for span in denied(text, options.deny_list)
    )
