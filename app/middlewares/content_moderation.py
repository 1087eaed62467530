"""Detect texts of a context that violate policies, and warn the model, report or refuse."""

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
WarningText = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\[\]\r\n]+$")]

SKIPPED_ROLES = frozenset({"system", "developer"})
"""Roles of the host's own texts, which are not judged: rules against violence mention violence."""

_PERSON_LABEL = "PERSON"
_PERSON_REPLACEMENT = "someone"

SKIPPED_PLACES = frozenset({LeafPlace.URI, LeafPlace.KEY, LeafPlace.NUMBER})


class CustomPolicy(BaseModel):
    """A caller's own policy: words, phrases and patterns that a text must not contain."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: PolicyName = Field(description="Name of the policy and of its flag.")
    terms: list[Term] = Field(
        default=[], max_length=500, description="Whole words or phrases; letter case is ignored."
    )
    patterns: list[Pattern] = Field(
        default=[], max_length=50, description="Regular expressions in RE2 syntax; letter case is ignored."
    )
    severity: Severity = Field(default="medium", description="Severity of a match.")
    warning: WarningText | None = Field(
        default=None, description="Warning for the model if the policy matches."
    )


def _as_plain_array(schema: dict[str, Any]) -> None:
    """Show an optional list as the proposal does: some hosts read the type of an argument and no alternatives."""
    array = next(form for form in schema.pop("anyOf") if form["type"] == "array")
    schema.pop("default", None)
    schema.update(array)


class ContentModerationArguments(ScanningArguments):
    """What to judge, how strictly, and what to do about it; a tenant's policy may fix any of them."""

    policies: list[PolicyName] | None = Field(
        default=None,
        max_length=26,
        description="Names of policies: violence, harassment, hate, sexual, self_harm, illicit and those of "
        "customPolicies; default: all of them.",
        json_schema_extra=_as_plain_array,
    )
    level: Level = Field(
        default="enterprise",
        description="How strict: regulated wrongly flags up to 3 % of ordinary requests, enterprise 1 %, consumer "
        "0.3 %. The embedded engine detects words and topics, not intent: at enterprise it flags 8 % of harmless "
        "texts that share their words with harmful ones, and misses 30 % of the harmful ones. It reads English best; "
        "German, French, Spanish, Italian, Portuguese, Dutch and Chinese by words alone; other languages hardly.",
    )
    action: Action | dict[PolicyName, Action] = Field(
        default="annotate",
        description="annotate puts a warning in front of the user's text; report changes nothing and states in allow "
        "what block would do; block refuses the call if severity is high or a custom policy matches, and otherwise "
        "annotates. One for all or one per policy (default annotate). self_harm is blocked only if block is set for "
        "it by name, since its warning tells the model how to help.",
    )
    custom_policies: list[CustomPolicy] = Field(
        default=[],
        max_length=20,
        alias="customPolicies",
        description="Your own policies, defined by terms and patterns.",
    )


class ContentModeration(Middleware[ContentModerationArguments]):
    """Judge every text of users, assistants, tools and documents."""

    name = "content_moderation"
    title = "Content moderation"
    description = (
        "Analyze context for policy violations. The embedded engine gives hints, not verdicts: "
        "the description of level states how often it is wrong."
    )
    phase = "outbound"
    arguments = ContentModerationArguments

    async def apply(self, context: Context, arguments: ContentModerationArguments) -> Outcome:
        """Score every item; warn, report or refuse, depending on the action."""
        policies, custom = _requested_policies(arguments)
        arguments.refuse_unscanned(context)
        texts, read = await off_loop(context.characters, _texts_for_engine, context)
        moderation = await self.engines.moderator.moderate(read, policies) if policies else None
        matches = await self._matches(list(texts.values()), custom, arguments)
        verdict = _Verdict(arguments, custom)
        for number, item in enumerate(texts):
            verdict.judge(item, read[number], number, moderation, matches[number])
        verdict.refuse()
        report = moderation.report if moderation is not None else None
        warnings = verdict.warnings
        edited = (
            context.prefixed("\n".join(f"[MODERATION WARNING: {warning}]" for warning in warnings) + "\n\n")
            if warnings
            else context
        )
        return Outcome(
            edited,
            verdict.metadata(policies) | unscanned_metadata(context),
            dict(verdict.counts),
            audit_details=verdict.audit_details(report),
            engine=report,
        )

    async def _matches(
        self, texts: list[str], custom: list[CustomPolicy], arguments: ContentModerationArguments
    ) -> list[frozenset[int]]:
        lists = [TermList(tuple(policy.terms), tuple(policy.patterns)) for policy in custom]
        try:
            return await self.engines.terms.match(texts, lists)
        except InvalidPatternError as error:
            position = arguments.custom_policies.index(custom[error.position])
            raise InvalidArgumentsError(
                "The pattern of a custom policy is not a regular expression in RE2 syntax, or needs too much memory.",
                details={"pointer": f"/arguments/customPolicies/{position}/patterns/{error.pattern}"},
            ) from None


def _requested_policies(arguments: ContentModerationArguments) -> tuple[list[str], list[CustomPolicy]]:
    """Return the requested policies of the engine and the requested custom ones."""
    custom: dict[str, CustomPolicy] = {}
    for number, policy in enumerate(arguments.custom_policies):
        if policy.name in custom or policy.name in POLICIES:
            raise InvalidArgumentsError(
                "A custom policy needs a name that no other policy has.",
                details={"pointer": f"/arguments/customPolicies/{number}/name"},
            )
        if not policy.terms and not policy.patterns:
            raise InvalidArgumentsError(
                "A custom policy needs terms or patterns.",
                details={"pointer": f"/arguments/customPolicies/{number}"},
            )
        custom[policy.name] = policy
    known_policies = [*POLICIES, *custom]
    requested = known_policies if arguments.policies is None else list(dict.fromkeys(arguments.policies))
    with_action = [] if isinstance(arguments.action, str) else list(arguments.action)
    for field_name, names in (("policies", requested), ("action", with_action)):
        for number, name in enumerate(names):
            if name not in known_policies:
                step = number if field_name == "policies" else name
                raise InvalidArgumentsError(
                    "Unknown policy; details list the known ones.",
                    details={"pointer": f"/arguments/{field_name}/{step}", "known": known_policies},
                )
    builtin = [name for name in requested if name in POLICIES]
    return builtin, [custom[name] for name in requested if name in custom]


def _judged_texts(context: Context) -> dict[int, str]:
    """Return the text to judge per item: all its strings, one per line."""
    lines: dict[int, list[str]] = {}
    for leaf in context.leaves:
        if leaf.role not in SKIPPED_ROLES and leaf.place not in SKIPPED_PLACES:
            lines.setdefault(int(leaf.value.path[0]), []).append(leaf.scannable)
    return {item: "\n".join(parts) for item, parts in lines.items()}


def _texts_for_engine(context: Context) -> tuple[dict[int, str], list[str]]:
    """Return the text to judge per item, and the same texts in the form for the engine."""
    texts = _judged_texts(context)
    return texts, [_with_persons_named(text) for text in texts.values()]


def _with_persons_named(text: str) -> str:
    """Replace handles of persons by a word for a person, so that the engine recognises harm to people."""
    parts: list[str] = []
    end = 0
    for match in find_handles(text, exact=True):
        if match.handle.label == _PERSON_LABEL:
            parts += [text[end : match.start], _PERSON_REPLACEMENT]
            end = match.end
    return "".join([*parts, text[end:]])


@dataclass(slots=True)
class _Flag:
    name: str
    severity: Severity
    warning: str
    policy: str


@dataclass(slots=True)
class _Verdict:
    """Collect flags and scores, item by item."""

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
        """Add the judgement of one item."""
        scores: dict[str, float] = {}
        flags: list[_Flag] = []
        if moderation is not None:
            windows = moderation.windows[number] if moderation.windows else {}
            for policy, score in moderation.scores[number].items():
                scores[policy] = round(score, 3)
                if score >= THRESHOLDS[self.arguments.level]:
                    category = category_of(policy, text[slice(*windows.get(policy, (None, None)))])
                    flags.append(_flag(policy, category, score))
        for position, custom_policy in enumerate(self.custom):
            scores[custom_policy.name] = float(position in matched)
            if position in matched:
                warning = custom_policy.warning or f"This text may violate the policy {custom_policy.name}"
                flags.append(_Flag(custom_policy.name, custom_policy.severity, warning, custom_policy.name))
        names = list(dict.fromkeys(flag.name for flag in flags))
        self.items.append({"item": item, "flags": names, "scores": scores})
        self.counts.update(names)
        for policy, score in scores.items():
            self.highest[policy] = max(self.highest[policy], score)  # type: ignore[assignment]
        for flag in flags:
            self._add_flag(flag)

    def _add_flag(self, flag: _Flag) -> None:
        self.severity = max(self.severity, flag.severity, key=SEVERITIES.index)
        self.flags.setdefault(flag.name, flag)
        action = self._action_for(flag.policy)
        is_clear = flag.severity == "high" or flag.policy not in POLICIES
        if action != "annotate" and is_clear:
            self.allow = False
            self.refused |= action == "block"
        if action != "report":
            self.warnings[flag.warning] = None

    def _action_for(self, policy: str) -> Action:
        action = self.arguments.action
        if not isinstance(action, str):
            return action.get(policy, "annotate")
        # Do not refuse people in distress, unless block was set for this very policy.
        return "annotate" if policy == "self_harm" and action == "block" else action

    def refuse(self) -> None:
        """Raise BlockedByPolicyError if an action blocks a flag."""
        if self.refused:
            raise BlockedByPolicyError(
                "The context violates a policy that this call blocks; details list the flags.",
                details={
                    "flags": list(self.flags),
                    "severity": self.severity,
                    "items": [item["item"] for item in self.items if item["flags"]],
                },
            )

    def metadata(self, policies: list[str]) -> dict[str, Any]:
        """Return the result for applications."""
        names = [*policies, *(policy.name for policy in self.custom)]
        return {
            "flags": list(self.flags),
            "severity": self.severity,
            "allow": self.allow,
            "scores": {name: float(self.highest[name]) for name in names},
            "items": self.items,
        }

    def audit_details(self, report: EngineReport | None) -> dict[str, str | int | bool]:
        """Return the details of the audit event besides the counts of flags."""
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
