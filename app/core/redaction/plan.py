"""Decide what happens to findings, no matter which engine found them: modes, unchangeable places, refusals."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from app.core.content.context import Context
from app.core.content.leaves import REPORTED_PLACES, Leaf, LeafPlace
from app.core.content.text_edits import Edit, Mask
from app.core.contracts.engines import Span
from app.core.contracts.middleware import ScopeName, VaultOptions
from app.core.contracts.unscanned import ScanningArguments, unscanned_metadata
from app.core.errors import BlockedByPolicyError, UnscannableContentError
from app.core.offload import LIGHT, off_loop
from app.core.redaction.redaction import HandlesInText, conceal_edits

Mode = Literal["handle", "mask", "hash", "remove", "block", "report"]
Term = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Numbers = Literal["report", "block", "string"]


USER_ID: Final = "USER_ID"
"""The label of an end user's id, which a request to a model names beside its messages."""


class RedactionArguments(ScanningArguments):
    """Arguments that every redaction takes."""

    allow_list: list[Term] = Field(default=[], max_length=1000, description="Texts that are never a finding.")
    scope: ScopeName | None = Field(
        default=None,
        description="Vault scope, usually one per conversation: equal values get equal handles. "
        "Without it, a new random scope is created and returned.",
    )
    mode: Mode | dict[str, Mode] = Field(
        default="handle",
        description="handle (restorable), mask, hash (keyed), remove, block (refuse the call), report (change "
        "nothing); one for all types or one per type.",
    )
    handles_in_input: Literal["keep", "escape"] = Field(
        default="keep",
        description="keep: handles that this scope gave stay, and so does text like a handle in system and developer "
        "messages; any other text like a handle is replaced by a handle. escape: all of it is replaced.",
    )
    numbers: Numbers = Field(
        default="string",
        description="A finding in a JSON number: redact it, so that the number becomes a string (string), report "
        "it and leave it as it is (report), or refuse the call (block).",
    )
    uris: Literal["report", "change"] = Field(
        default="report", description="Report or change findings in URIs."
    )
    member_names: Literal["report", "change"] = Field(
        default="report", description="Report or change findings in names of members of data."
    )
    canonical: bool = Field(
        default=False, description="Share one handle between spellings that differ in case or spaces."
    )
    tagged: bool = Field(
        default=False, description="Add a tag that depends on the value to handles: [PERSON_1~k3fq]."
    )
    ttl_s: int | None = Field(default=None, gt=0, description="Lifetime of a new scope, in seconds.")
    return_mapping: bool = Field(
        default=False,
        alias="returnMapping",
        description="Return the map from handle to original; needs the role restorer and is audited.",
    )

    @property
    def blocks_findings(self) -> bool:
        """Return whether ``mode`` refuses findings of any type."""
        return self.mode == "block" or (isinstance(self.mode, dict) and "block" in self.mode.values())

    def vault(self) -> VaultOptions:
        """Return the options with which the service stores the originals."""
        return VaultOptions(
            scope=self.scope,
            conceals=True,
            return_mapping=self.return_mapping,
            canonical=self.canonical,
            tagged=self.tagged,
            ttl_s=self.ttl_s,
        )


_PROTOCOL_MAPS: Final = frozenset({"_meta", "inputRequests", "inputResponses"})
"""Members whose own members have names that programs agree on."""

INSTRUCTING_ROLES: Final = frozenset({"system", "developer"})
"""Roles whose text the application wrote itself: it may speak of handles ("never change [PERSON_1]")."""

_TOKEN = re.compile(r"(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{20,}")
"""Random characters, such as a key; words and numbers are shorter or have only letters or digits."""
_TOKEN_REACH = 512


def extended(leaf: Leaf, spans: list[Span]) -> list[Span]:
    """Extend spans to whole tokens and whole numbers, of which no part may stay."""
    if leaf.place is not LeafPlace.NUMBER or not spans:
        return _extended_to_tokens(leaf.text, spans)
    longest = max(spans, key=lambda span: span.end - span.start)
    return [Span(0, len(leaf.text), longest.label, longest.score)]


def _extended_to_tokens(text: str, spans: list[Span]) -> list[Span]:
    """Extend spans to whole tokens, since the rest of a partly replaced token would stay and go unnoticed."""
    if not any(_splits_run(text, span.start) or _splits_run(text, span.end) for span in spans):
        return spans
    extended: list[Span] = []
    for span in spans:
        start, end = _token_around(text, span.start)[0], _token_around(text, span.end)[1]
        if extended and start < extended[-1].end:
            previous = extended.pop()
            best = max(previous, span, key=lambda candidate: candidate.score)
            extended.append(Span(previous.start, max(previous.end, end), best.label, best.score))
        else:
            extended.append(Span(start, end, span.label, span.score))
    return extended


def _splits_run(text: str, offset: int) -> bool:
    return 0 < offset < len(text) and text[offset - 1].isalnum() and text[offset].isalnum()


def _token_around(text: str, offset: int) -> tuple[int, int]:
    """Return the token around an offset inside it; otherwise the offset twice."""
    if not _splits_run(text, offset):
        return offset, offset
    first, last = offset, offset
    while first > max(0, offset - _TOKEN_REACH) and _is_token_character(text[first - 1]):
        first -= 1
    while last < min(len(text), offset + _TOKEN_REACH) and _is_token_character(text[last]):
        last += 1
    # After a backslash, the first letter is part of an escape sequence.
    if text[first - 1 : first] == "\\" or _TOKEN.fullmatch(text, first, last) is None:
        return offset, offset
    return first, last


def _is_token_character(char: str) -> bool:
    return char.isascii() and char.isalnum()


class RedactionPlan:
    """Decide what happens to each finding, and count.

    ``modes`` are by label, with the mode for all others under the empty label; ``subject`` names what is searched.
    ``digests_users``: ids of end users become keyed digests.
    """

    def __init__(
        self,
        arguments: RedactionArguments,
        modes: Mapping[str, Mode],
        subject: str,
        *,
        digests_users: bool = False,
    ) -> None:
        self.arguments = arguments
        self.modes = modes
        self.subject = subject
        self.digests_users = digests_users
        self.counts: Counter[str] = Counter()
        self.item_counts: Counter[tuple[int, str]] = Counter()
        self.blocked: Counter[str] = Counter()
        self.fixed: Counter[str] = Counter()
        self.reported: Counter[tuple[str, str, int]] = Counter()
        self.masked: Counter[tuple[str, str]] = Counter()

    async def edited(self, context: Context, spans: Sequence[list[Span]]) -> Context:
        """Return ``context`` with the edits of all leaves planned.

        Raise BlockedByPolicyError or UnscannableContentError if the arguments refuse a finding.
        """
        edited = await off_loop(context.characters // LIGHT, self._plan_edits, context, spans)
        self._refuse_findings()
        return edited

    def _plan_edits(self, context: Context, spans: Sequence[list[Span]]) -> Context:
        pairs = zip(context.leaves, spans, strict=True)
        return context.edited(
            edit for leaf, leaf_spans in pairs for edit in self._leaf_edits(leaf, leaf_spans)
        )

    def _leaf_edits(self, leaf: Leaf, spans: list[Span]) -> list[Edit]:
        if leaf.place is LeafPlace.USER and self.digests_users:
            return self._user_edits(leaf)
        changes = self._may_change(leaf)
        concealed: list[Span] = []
        masked: list[Span] = []
        edits: list[Edit] = []
        for span in extended(leaf, spans):
            label = span.label
            self.counts[label] += 1
            self.item_counts[int(leaf.value.path[0]), label] += 1
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
            edits += conceal_edits(leaf, concealed, masked=masked, handles=self._handles_in(leaf))
        return edits

    def _handles_in(self, leaf: Leaf) -> HandlesInText:
        if self.arguments.handles_in_input == "escape":
            return "escape"
        if leaf.role in INSTRUCTING_ROLES:
            return "leave"
        # A scope without a name is new with this call and has given no handle yet.
        return "escape" if self.arguments.scope is None else "keep"

    def _user_edits(self, leaf: Leaf) -> list[Edit]:
        """Replace an end user's id by a keyed digest, whether it holds a finding or not.

        The same user has the same digest in all scopes, so whoever watches for abuse can still tell users apart.
        """
        self.counts[USER_ID] += 1
        if not leaf.text or self.modes.get("", "handle") == "report":
            self.reported[USER_ID, leaf.place, int(leaf.value.path[0])] += 1
            return []
        self.masked[USER_ID, "digest"] += 1
        return [Edit(leaf, 0, len(leaf.text), Mask(USER_ID, "digest"))]

    def _may_change(self, leaf: Leaf) -> bool:
        if leaf.place is LeafPlace.NUMBER:
            return self.arguments.numbers == "string"
        if leaf.place is LeafPlace.URI:
            return self.arguments.uris == "change"
        if leaf.place is LeafPlace.KEY and self.arguments.member_names == "change":
            return leaf.is_member_name and _PROTOCOL_MAPS.isdisjoint(leaf.pointer.split("/")[-2:-1])
        return leaf.place not in REPORTED_PLACES

    def _refuse_findings(self) -> None:
        if self.blocked:
            raise BlockedByPolicyError(
                f"The context contains {self.subject} of a type that this call blocks.",
                details={"types": {label.lower(): count for label, count in sorted(self.blocked.items())}},
            )
        if self.arguments.numbers == "block" and self.fixed[LeafPlace.NUMBER]:
            raise UnscannableContentError(
                f"The context contains {self.subject} as a number, and numbers: block refuses that.",
                details={"numbers": self.fixed[LeafPlace.NUMBER]},
            )
        if self.arguments.unscanned == "block" and self.fixed.total():
            raise UnscannableContentError(
                f"A place that may not be changed contains {self.subject}, and unscanned: block refuses that.",
                details={"places": {place: count for place, count in self.fixed.items() if count}},
            )

    def metadata(self, context: Context) -> dict[str, Any]:
        """Return counts of what was reported, masked and not scanned, without content."""
        metadata: dict[str, Any] = {}
        if self.reported:
            metadata["reported"] = [
                {"type": label.lower(), "place": str(place), "item": item, "count": count}
                for (label, place, item), count in sorted(self.reported.items())
            ]
        if self.masked:
            metadata["masked"] = [
                {"type": label.lower(), "mode": mode, "count": count}
                for (label, mode), count in sorted(self.masked.items())
            ]
        return metadata | unscanned_metadata(context)
