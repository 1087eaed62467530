"""What redaction does with findings, whichever engine found them: modes, places that may not change, refusals."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from app.core.content.context import Context, Edit, Mask
from app.core.content.leaves import REPORTED_PLACES, Leaf, LeafPlace
from app.core.contracts.engines import Span
from app.core.contracts.middleware import ScopeName, VaultOptions
from app.core.contracts.unscanned import ScanningArguments, told_unscanned
from app.core.errors import BlockedByPolicyError, UnscannableContentError
from app.core.offload import off_loop
from app.core.redaction.redaction import conceal_edits

Mode = Literal["handle", "mask", "hash", "remove", "block", "report"]
Term = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Numbers = Literal["report", "block", "string"]


class RedactionArguments(ScanningArguments):
    """What every redaction takes."""

    allow_list: list[Term] = Field(default=[], max_length=1000, description="Texts that are never a finding.")
    scope: ScopeName | None = Field(
        default=None,
        description="Vault scope, usually one per conversation: equal values get equal handles. "
        "Without it a new random one is made and returned.",
    )
    mode: Mode | dict[str, Mode] = Field(
        default="handle",
        description="handle (restorable), mask, hash (keyed), remove, block (refuse the call), report (leave it); "
        "one for all or one per type.",
    )
    handles_in_input: Literal["escape", "keep"] = Field(
        default="escape",
        description="Text that already looks like a handle is escaped; keep leaves the handles of this scope.",
    )
    uris: Literal["report", "change"] = Field(default="report", description="Findings inside URIs.")
    canonical: bool = Field(
        default=False, description="Spellings that differ in case or space share a handle."
    )
    tagged: bool = Field(
        default=False, description="Handles carry a tag bound to the value: [PERSON_1~k3fq]."
    )
    ttl_s: int | None = Field(default=None, gt=0, description="Life of a new scope, in seconds.")
    return_mapping: bool = Field(
        default=False,
        alias="returnMapping",
        description="Answer with the map from handle to original; needs the role restorer and is audited.",
    )

    def vault(self) -> VaultOptions:
        """Return what the service needs to know to keep the originals."""
        return VaultOptions(
            scope=self.scope,
            conceals=True,
            return_mapping=self.return_mapping,
            canonical=self.canonical,
            tagged=self.tagged,
            ttl_s=self.ttl_s,
        )


_TOKEN = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{20,}")
"""Drawn characters, as of a key; words and numbers are shorter, or of one kind."""
_TOKEN_REACH = 512


def _whole_tokens(text: str, spans: list[Span]) -> list[Span]:
    """Return the spans so that none takes a part of a token, of which the rest would stay and be known by nobody."""
    if not any(_cuts(text, span.start) or _cuts(text, span.end) for span in spans):
        return spans
    whole: list[Span] = []
    for span in spans:
        start, end = _run(text, span.start)[0], _run(text, span.end)[1]
        if whole and start < whole[-1].end:
            before = whole.pop()
            surer = max(before, span, key=lambda one: one.score)
            whole.append(Span(before.start, max(before.end, end), surer.label, surer.score))
        else:
            whole.append(Span(start, end, span.label, span.score))
    return whole


def _cuts(text: str, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()


def _run(text: str, place: int) -> tuple[int, int]:
    """Return the token around a place that cuts one, else the place itself."""
    if not _cuts(text, place):
        return place, place
    first, last = place, place
    while first > max(0, place - _TOKEN_REACH) and _is_drawn(text[first - 1]):
        first -= 1
    while last < min(len(text), place + _TOKEN_REACH) and _is_drawn(text[last]):
        last += 1
    # Behind a back slash the first letter is a part of an escape.
    if text[first - 1 : first] == "\\" or _TOKEN.fullmatch(text, first, last) is None:
        return place, place
    return first, last


def _is_drawn(char: str) -> bool:
    return char.isascii() and char.isalnum()


class RedactionPlan:
    """Decides for each finding what becomes of it, and counts.

    ``modes`` are by label, the one for all others under the empty one; ``subject`` names what is looked for.
    """

    def __init__(
        self,
        arguments: RedactionArguments,
        modes: Mapping[str, Mode],
        subject: str,
        numbers: Numbers = "report",
    ) -> None:
        self.arguments = arguments
        self.modes = modes
        self.subject = subject
        self.numbers = numbers
        self.counts: Counter[str] = Counter()
        self.blocked: Counter[str] = Counter()
        self.fixed: Counter[str] = Counter()
        self.reported: Counter[tuple[str, str, int]] = Counter()
        self.masked: Counter[tuple[str, str]] = Counter()

    async def edited(self, context: Context, spans: Sequence[list[Span]]) -> Context:
        """Return ``context`` with the edits of all leaves planned, or raise where the arguments refuse a finding."""
        made = await off_loop(context.characters, self._edited, context, spans)
        self._refuse()
        return made

    def _edited(self, context: Context, spans: Sequence[list[Span]]) -> Context:
        pairs = zip(context.leaves, spans, strict=True)
        return context.edited(edit for leaf, found in pairs for edit in self._leaf(leaf, found))

    def _leaf(self, leaf: Leaf, spans: list[Span]) -> list[Edit]:
        changes = self._may_change(leaf.place)
        concealed: list[Span] = []
        masked: list[Span] = []
        edits: list[Edit] = []
        for span in self._whole_numbers(leaf, _whole_tokens(leaf.text, spans)):
            label = span.label
            self.counts[label] += 1
            mode = self.modes.get(label, self.modes.get("", "handle"))
            if mode == "block":
                self.blocked[label] += 1
            elif mode == "report" or not changes:
                self.reported[label, leaf.place, int(leaf.value.path[0])] += 1
                self.fixed[leaf.place] += mode != "report"
            elif mode == "handle":
                concealed.append(span)
            else:
                masked.append(span)
                self.masked[label, mode] += 1
                edits.append(Edit(leaf, span.start, span.end, Mask(label, mode)))
        if changes:
            keep = self.arguments.handles_in_input == "keep"
            edits += conceal_edits(leaf, concealed, masked=masked, keep_handles=keep)
        return edits

    def _may_change(self, place: LeafPlace) -> bool:
        if place is LeafPlace.NUMBER:
            return self.numbers == "string"
        if place is LeafPlace.URI:
            return self.arguments.uris == "change"
        return place not in REPORTED_PLACES

    @staticmethod
    def _whole_numbers(leaf: Leaf, spans: list[Span]) -> list[Span]:
        """Half a number cannot become a string: the whole one does."""
        if leaf.place is not LeafPlace.NUMBER or not spans:
            return spans
        best = max(spans, key=lambda span: span.end - span.start)
        return [Span(0, len(leaf.text), best.label, best.score)]

    def _refuse(self) -> None:
        if self.blocked:
            raise BlockedByPolicyError(
                f"The context holds {self.subject} of a type that this call blocks.",
                details={"types": {label.lower(): count for label, count in sorted(self.blocked.items())}},
            )
        if self.numbers == "block" and self.fixed[LeafPlace.NUMBER]:
            raise UnscannableContentError(
                f"The context holds {self.subject} as a number, and numbers: block refuses that.",
                details={"numbers": self.fixed[LeafPlace.NUMBER]},
            )
        if self.arguments.unscanned == "block" and self.fixed.total():
            raise UnscannableContentError(
                f"A place that may not be changed holds {self.subject}, and unscanned: block refuses that.",
                details={"places": {place: count for place, count in self.fixed.items() if count}},
            )

    def metadata(self, context: Context) -> dict[str, Any]:
        """Return what was reported, masked and not scanned, without content."""
        found: dict[str, Any] = {}
        if self.reported:
            found["reported"] = [
                {"type": label.lower(), "place": str(place), "item": item, "count": count}
                for (label, place, item), count in sorted(self.reported.items())
            ]
        if self.masked:
            found["masked"] = [
                {"type": label.lower(), "mode": mode, "count": count}
                for (label, mode), count in sorted(self.masked.items())
            ]
        return found | told_unscanned(context)
