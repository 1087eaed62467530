"""Say which texts of a context go against policies, and warn the model, report or refuse."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.core.content.context import Context
from app.core.content.handles import find_handles
from app.core.content.leaves import LeafPlace
from app.core.contracts.engines import EngineReport, InvalidPatternError, Moderation, TermList
from app.core.contracts.middleware import Middleware, Outcome
from app.core.contracts.moderation import (
    POLICIES,
    SEVERITIES,
    THRESHOLDS,
    Category,
    Level,
    Severity,
    category_of,
    severity_of,
)
from app.core.contracts.unscanned import ScanningArguments, unscanned_metadata
from app.core.errors import BlockedByPolicyError, InvalidArgumentsError
from app.core.offload import off_loop

Action = Literal["annotate", "block", "report"]
Term = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=500)]
PolicyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Warning_ = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\[\]\r\n]+$")]

SKIPPED_ROLES = frozenset({"system", "developer"})
"""The host's own words: rules against violence speak of violence."""

_PERSON = "PERSON"
_SOMEBODY = "someone"

SKIPPED_PLACES = frozenset({LeafPlace.URI, LeafPlace.KEY, LeafPlace.NUMBER})


class CustomPolicy(BaseModel):
    """A policy of the caller's own: words, phrases and patterns that a text must not hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: PolicyName = Field(description="Its name, which is also its flag.")
    terms: list[Term] = Field(
        default=[], max_length=500, description="Whole words or phrases, in any case of letters."
    )
    patterns: list[Pattern] = Field(
        default=[], max_length=50, description="Regular expressions in RE2's syntax, in any case of letters."
    )
    severity: Severity = Field(default="medium", description="What a match is worth.")
    warning: Warning_ | None = Field(default=None, description="What the model is told where it matches.")


class ContentModerationArguments(ScanningArguments):
    """What is judged, how strictly, and what becomes of it; a tenant's policy may fix any of them."""

    policies: list[PolicyName] | None = Field(
        default=None,
        max_length=26,
        description="Names among violence, harassment, hate, sexual, self_harm, illicit and those of customPolicies; "
        "default: all of them.",
    )
    level: Level = Field(
        default="enterprise",
        description="How strict: regulated flags up to 3 % of ordinary requests wrongly, enterprise 1 %, consumer "
        "0.3 %. The embedded engine knows words and topics, not intent: at enterprise it flags 8 % of harmless texts "
        "that share their words with harmful ones, and misses 30 % of those. English only.",
    )
    action: Action | dict[PolicyName, Action] = Field(
        default="annotate",
        description="annotate puts a warning in front of the user's text; report changes nothing and says in allow "
        "what block would do; block refuses the call where severity is high or a custom policy matches, else "
        "annotates. One for all or one per policy (default annotate). self_harm is blocked only where it is named: "
        "its warning tells the model how to help.",
    )
    custom_policies: list[CustomPolicy] = Field(
        default=[],
        max_length=20,
        alias="customPolicies",
        description="Policies of your own, by terms and patterns.",
    )


class ContentModeration(Middleware[ContentModerationArguments]):
    """Judge every text of users, assistants, tools and documents."""

    name = "content_moderation"
    title = "Content moderation"
    description = (
        "Analyze context for policy violations. The embedded engine gives hints, not verdicts: "
        "the argument level says how often it errs."
    )
    phase = "outbound"
    arguments = ContentModerationArguments

    async def apply(self, context: Context, arguments: ContentModerationArguments) -> Outcome:
        """Score every item; warn, report or refuse as the action says."""
        asked, custom = _asked(arguments)
        arguments.refuse_unscanned(context)
        texts, read = await off_loop(context.characters, _as_read, context)
        moderation = await self.engines.moderator.moderate(read, asked) if asked else None
        matches = await self._matches(list(texts.values()), custom, arguments)
        verdict = _Verdict(arguments, custom)
        for number, item in enumerate(texts):
            verdict.judge(item, read[number], number, moderation, matches[number])
        verdict.refuse()
        report = moderation.report if moderation is not None else None
        warnings = verdict.warnings
        edited = (
            context.prefixed("\n".join(f"[MODERATION WARNING: {one}]" for one in warnings) + "\n\n")
            if warnings
            else context
        )
        return Outcome(
            edited,
            verdict.metadata(asked) | unscanned_metadata(context),
            dict(verdict.counts),
            audit_details=verdict.audit_details(report),
            engine=report,
        )

    async def _matches(
        self, texts: list[str], custom: list[CustomPolicy], arguments: ContentModerationArguments
    ) -> list[frozenset[int]]:
        lists = [TermList(tuple(one.terms), tuple(one.patterns)) for one in custom]
        try:
            return await self.engines.terms.match(texts, lists)
        except InvalidPatternError as error:
            position = arguments.custom_policies.index(custom[error.position])
            raise InvalidArgumentsError(
                "The pattern of a custom policy is no regular expression of RE2's syntax, or needs too much memory.",
                details={"pointer": f"/arguments/customPolicies/{position}/patterns/{error.pattern}"},
            ) from None


def _asked(arguments: ContentModerationArguments) -> tuple[list[str], list[CustomPolicy]]:
    """Return the policies of the engine and the custom ones that were asked for."""
    custom: dict[str, CustomPolicy] = {}
    for number, one in enumerate(arguments.custom_policies):
        if one.name in custom or one.name in POLICIES:
            raise InvalidArgumentsError(
                "A custom policy needs a name of its own.",
                details={"pointer": f"/arguments/customPolicies/{number}/name"},
            )
        if not one.terms and not one.patterns:
            raise InvalidArgumentsError(
                "A custom policy needs terms or patterns to look for.",
                details={"pointer": f"/arguments/customPolicies/{number}"},
            )
        custom[one.name] = one
    known = [*POLICIES, *custom]
    wanted = known if arguments.policies is None else list(dict.fromkeys(arguments.policies))
    named = [] if isinstance(arguments.action, str) else list(arguments.action)
    for field_name, names in (("policies", wanted), ("action", named)):
        for number, name in enumerate(names):
            if name not in known:
                place = number if field_name == "policies" else name
                raise InvalidArgumentsError(
                    "Unknown policy; details list the known ones.",
                    details={"pointer": f"/arguments/{field_name}/{place}", "known": known},
                )
    return [one for one in wanted if one in POLICIES], [custom[one] for one in wanted if one in custom]


def _texts(context: Context) -> dict[int, str]:
    """Return the text of each item that is judged: all its strings, a line each."""
    lines: dict[int, list[str]] = {}
    for leaf in context.leaves:
        if leaf.role not in SKIPPED_ROLES and leaf.place not in SKIPPED_PLACES:
            lines.setdefault(int(leaf.value.path[0]), []).append(leaf.scannable)
    return {item: "\n".join(parts) for item, parts in lines.items()}


def _as_read(context: Context) -> tuple[dict[int, str], list[str]]:
    """Return the text of each item that is judged, and all of them as the engine reads them."""
    texts = _texts(context)
    return texts, [_read(text) for text in texts.values()]


def _read(text: str) -> str:
    """Return a text as the engine reads it: redaction made handles of people, and harm to one is harm to somebody."""
    parts: list[str] = []
    end = 0
    for one in find_handles(text, exact=True):
        if one.handle.label == _PERSON:
            parts += [text[end : one.start], _SOMEBODY]
            end = one.end
    return "".join([*parts, text[end:]])


@dataclass(slots=True)
class _Flag:
    name: str
    severity: Severity
    warning: str
    policy: str


@dataclass(slots=True)
class _Verdict:
    """Collects what was found, item by item."""

    arguments: ContentModerationArguments
    custom: list[CustomPolicy]
    flags: dict[str, _Flag] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    items: list[dict[str, Any]] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    highest: Counter[str] = field(default_factory=Counter)
    severity: Severity = "low"
    refused: bool = False
    allow: bool = True

    def judge(
        self, item: int, text: str, number: int, moderation: Moderation | None, matched: frozenset[int]
    ) -> None:
        """Take in one item."""
        scores: dict[str, float] = {}
        found: list[_Flag] = []
        if moderation is not None:
            windows = moderation.windows[number] if moderation.windows else {}
            for policy, score in moderation.scores[number].items():
                scores[policy] = round(score, 3)
                if score >= THRESHOLDS[self.arguments.level]:
                    category = category_of(policy, text[slice(*windows.get(policy, (None, None)))])
                    found.append(_flag(policy, category, score))
        for position, one in enumerate(self.custom):
            scores[one.name] = float(position in matched)
            if position in matched:
                warning = one.warning or f"This text may go against the policy {one.name}"
                found.append(_Flag(one.name, one.severity, warning, one.name))
        names = list(dict.fromkeys(flag.name for flag in found))
        self.items.append({"item": item, "flags": names, "scores": scores})
        self.counts.update(names)
        for policy, score in scores.items():
            self.highest[policy] = max(self.highest[policy], score)  # type: ignore[assignment]
        for flag in found:
            self._weigh(flag)

    def _weigh(self, flag: _Flag) -> None:
        self.severity = max(self.severity, flag.severity, key=SEVERITIES.index)
        self.flags.setdefault(flag.name, flag)
        action = self._action(flag.policy)
        plain = flag.severity == "high" or flag.policy not in POLICIES
        if action != "annotate" and plain:
            self.allow = False
            self.refused |= action == "block"
        if action != "report":
            self.warnings[flag.warning] = None

    def _action(self, policy: str) -> Action:
        action = self.arguments.action
        if not isinstance(action, str):
            return action.get(policy, "annotate")
        # Who is in distress is not sent away, unless somebody decided so for this very policy.
        return "annotate" if policy == "self_harm" and action == "block" else action

    def refuse(self) -> None:
        """Raise where an action says so."""
        if self.refused:
            raise BlockedByPolicyError(
                "The context goes against a policy that this call blocks; details name the flags.",
                details={
                    "flags": list(self.flags),
                    "severity": self.severity,
                    "items": [one["item"] for one in self.items if one["flags"]],
                },
            )

    def metadata(self, asked: list[str]) -> dict[str, Any]:
        """Return what applications decide by."""
        names = [*asked, *(one.name for one in self.custom)]
        return {
            "flags": list(self.flags),
            "severity": self.severity,
            "allow": self.allow,
            "scores": {name: float(self.highest[name]) for name in names},
            "items": self.items,
        }

    def audit_details(self, report: EngineReport | None) -> dict[str, str | int | bool]:
        """Return what the audit event keeps beside the counts of flags."""
        details: dict[str, str | int | bool] = {
            "level": self.arguments.level,
            "severity": self.severity,
            "allow": self.allow,
        }
        if report is not None:
            details |= {"engine": report.name, "engine_version": report.version}
        return details


def _flag(policy: str, category: Category, score: float) -> _Flag:
    return _Flag(category.flag, severity_of(score, category), category.warning, policy)
