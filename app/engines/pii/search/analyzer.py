"""Find personal data in texts: recognizers, name tagger, decoded views, lists, names repeated in other texts."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.ground.labels import CUSTOM, NAME_LABELS, OPAQUE, RULES, thresholds
from app.engines.pii.ground.lists import AllowList, denied
from app.engines.pii.ground.named_values import named_value
from app.engines.pii.ground.spans import blanked, handles, of_named_type, opaque_runs, resolved, without
from app.engines.pii.names.carrying import carry, names_in
from app.engines.pii.names.doubts import own_letters
from app.engines.pii.names.nlp import NameTagger
from app.engines.pii.recognizers.secret import long_secrets
from app.engines.pii.recognizers.user import Definitions
from app.engines.pii.scan.matchers import MatcherName
from app.engines.pii.search.searching import Finding, Search
from app.engines.views.cued import CUED, beside_cue
from app.engines.views.glued import parts_names
from app.engines.views.mapping import TextView
from app.engines.views.reading import readings
from app.engines.views.tables import table_view

_NAMED_SCORE = 0.6


class Analyzer:
    """Find personal data in one process; not safe for use by two threads at once."""

    def __init__(
        self,
        tagger: NameTagger | None = None,
        matcher: MatcherName = "auto",
        database: bytes | None = None,
        definitions: Definitions | None = None,
    ) -> None:
        self._search = Search(tagger, matcher, database, definitions)

    def serialized(self) -> bytes | None:
        """Return the compiled patterns for another process; None if the matcher compiles nothing."""
        return self._search.serialized()

    def analyze(self, text: str, options: DetectionOptions) -> list[Span]:
        """Return the findings in one text: sorted, free of overlaps."""
        return self.analyze_all([text], options)[0]

    def analyze_all(self, texts: Sequence[str], options: DetectionOptions) -> list[list[Span]]:
        """Return the findings in each text of one context; a name found in one text is found in all."""
        findings = [self.scan(text, options) for text in texts]
        return carry(texts, findings, names_in(texts, findings), options)

    def scan(self, text: str, options: DetectionOptions) -> list[Span]:
        """Return the findings in ``text`` alone."""
        own = handles(text)
        seen = blanked(text, own) if own else text
        findings = list(self.candidates(seen, options))
        allowed = AllowList(options.allow_list)
        spans = (Span(finding.start, finding.end, finding.label, finding.score) for finding in findings)
        kept = [span for span in spans if span.label == CUSTOM or not allowed.holds(text, span)]
        return resolved(text, without(of_named_type(text, kept), own))

    def candidates(self, seen: str, options: DetectionOptions) -> Iterable[Finding]:
        """Yield everything found in ``seen`` and its decoded views, before overlaps and the allow list are applied."""
        plain = list(self._search.findings(seen, options))
        yield from plain
        yield from self._runs(seen, options)
        yield from _listed(seen, options)
        yield from _named(seen, options)
        other, table = readings(seen), table_view(seen)
        plain_places = (
            {(finding.start, finding.end, finding.label) for finding in plain}
            if other.views or other.glued
            else set()
        )
        if table is not None:
            yield from self._tabled(seen, table, options)
        own = {} if options.strict else own_letters(seen, options.language)
        viewed = [
            finding
            for view in other.views
            for finding in self._viewed(view, options, plain_places, seen, own)
        ]
        for view in other.glued:
            viewed += self._viewed(view, options, plain_places, names=parts_names(view))
        yield from viewed
        if other.cued is not None:
            yield from self._cued(other.cued, options, [*plain, *viewed])
        if OPAQUE in thresholds(options):
            yield from (
                Finding(start, end, OPAQUE, 1.0, OPAQUE, view="encoded") for start, end in other.sealed
            )

    def considered(self, text: str, options: DetectionOptions) -> Iterable[Finding]:
        """Yield every match of the recognizers and the tagger in the plain ``text``, whatever its type and score."""
        return self._search.considered(text, options)

    def context_words(self, finding: Finding) -> Sequence[str]:
        """Return the words that raise the score of ``finding``."""
        return self._search.context_words(finding)

    def _tabled(self, seen: str, table: TextView, options: DetectionOptions) -> Iterable[Finding]:
        """Yield findings in table cells that are read behind their column heads; none that includes a head."""
        ways = table.ways
        for finding in self._search.findings(table.text, options, list(table.windows())):
            start, end = table.original_span(finding.start, finding.end)
            if seen[start:end] == table.text[finding.start : finding.end]:
                yield finding._replace(start=start, end=end, view=ways)

    def _cued(
        self, view: TextView, options: DetectionOptions, others: Sequence[Finding]
    ) -> Iterable[Finding]:
        """Yield findings beside words that are read in English; none that includes such a word.

        What a recognizer found by words of its own, ``others``, it knows better: also where such a value ends.
        """
        begun = {other.start for other in others if other.entity not in NAME_LABELS}
        ordered = sorted(others, key=lambda finding: finding.start)
        furthest = list(accumulate((finding.end for finding in ordered), max))
        for finding in self._search.findings(view.text, options, list(view.windows())):
            if not beside_cue(view, finding.start, finding.end):
                continue
            start, end = view.original_span(finding.start, finding.end)
            before = bisect_right(ordered, start, key=lambda other: other.start)
            if start not in begun and (not before or furthest[before - 1] < end):
                yield finding._replace(start=start, end=end, view=CUED)

    def _viewed(
        self,
        view: TextView,
        options: DetectionOptions,
        plain: set[tuple[int, int, str]],
        seen: str = "",
        own: Mapping[int, int] | None = None,
        *,
        names: bool = True,
    ) -> Iterable[Finding]:
        """Yield findings in one view, at their place in the original, except ``plain``, those in the text itself.

        Names that differ from the original ``seen`` by its ``own`` letters alone are none: the text itself was read.
        """
        allowed, ways = AllowList(options.allow_list), view.ways
        findings = [
            *self._search.findings(view.text, options, list(view.windows()), tagged=names),
            *_listed(view.text, options),
        ]
        for finding in (*findings, *self._runs(view.text, options)):
            span = Span(finding.start, finding.end, finding.label, finding.score)
            if finding.label != CUSTOM and allowed.holds(view.text, span):
                continue
            start, end = view.original_span(finding.start, finding.end)
            if own and finding.label in NAME_LABELS:
                spelled = view.text[finding.start : finding.end]
                if spelled == seen[start:end].translate(own):
                    continue
            way = view.way(finding.start, finding.end)
            if way or (start, end, finding.label) not in plain:
                yield finding._replace(start=start, end=end, view=way or ways)

    @staticmethod
    def _runs(seen: str, options: DetectionOptions) -> Iterable[Finding]:
        """Yield runs too long to be scanned as words, and secrets of many lines."""
        least = thresholds(options)
        if OPAQUE in least:
            yield from (Finding(start, end, OPAQUE, 1.0, OPAQUE) for start, end in opaque_runs(seen))
        if "SECRET" in least:
            yield from (Finding(start, end, "SECRET", 1.0, "SECRET") for start, end in long_secrets(seen))


def _listed(text: str, options: DetectionOptions) -> Iterable[Finding]:
    """Yield matches of the deny list."""
    return (
        Finding(span.start, span.end, span.label, span.score, CUSTOM, "deny_list")
        for span in denied(text, options.deny_list)
    )


def _named(text: str, options: DetectionOptions) -> Iterable[Finding]:
    """Yield the value of a member whose name says what it is."""
    if (named := named_value(text)) is not None and named[2] in thresholds(options):
        start, end, entity = named
        yield Finding(start, end, RULES[entity].label, _NAMED_SCORE, entity, "NamedValue")
