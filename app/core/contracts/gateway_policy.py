"""What a policy says of requests to model providers: pipelines, routes, scopes, arguments of tools."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.core.content.secret_labels import is_secret
from app.core.contracts.policy_steps import Step
from app.core.globs import Glob

TYPE_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "contact": frozenset({"EMAIL", "PHONE", "ADDRESS"}),
    "health": frozenset(
        {
            *(
                "MRN",
                "MEMBER_ID",
                "MEDICAL",
                "MBI",
                "NPI",
                "CLAIM",
                "PRESCRIPTION",
                "REFERRAL",
                "AUTHORIZATION",
            ),
            *("NHS", "CHI", "HEALTH_CARD", "MEDICARE", "KVNR", "LANR", "BSNR", "NHI", "AMKA", "TAJ"),
        }
    ),
    "payment": frozenset({"CARD", "CVV", "CARD_EXPIRY", "IBAN", "BIC", "BANK_ACCOUNT", "ROUTING", "CRYPTO"}),
}
"""Words for several types of findings; ``secret`` is another one, for every type of ``secret_redaction``."""

SECRET_CLASS: Final = "secret"  # noqa: S105 - a word for types, not a secret
RESTORATION: Final = "pii_restoration"
_SPELLINGS: Final = {
    "sharedScopes": "shared_scopes",
    "toolArguments": "tool_arguments",
    "stableScope": "stable_scope",
    "inFlight": "in_flight",
}

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200)]
TypeName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
TargetName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


def types_match(wanted: Collection[str], present: Collection[str]) -> bool:
    """Return whether one of the ``wanted`` types or classes of types is ``present`` (labels of findings)."""
    names = {name.lower() for name in wanted}
    labels = {name.upper() for name in wanted}
    for name in names & TYPE_CLASSES.keys():
        labels |= TYPE_CLASSES[name]
    return any(label in labels or (SECRET_CLASS in names and is_secret(label)) for label in present)


def _redaction() -> list[Step]:
    return [Step(name="pii_redaction"), Step(name="secret_redaction")]


def _restoration() -> list[Step]:
    return [Step(name=RESTORATION)]


class GatewayPipeline(BaseModel):
    """Middlewares for requests to a provider and for its answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    providers: list[Pattern] = Field(
        default_factory=lambda: ["*"], description="Names of providers; `*` is any text."
    )
    models: list[Pattern] = Field(
        default_factory=lambda: ["*"], description="Models, by the provider's own names; `*` is any text."
    )
    outbound: list[Step] = Field(
        default_factory=_redaction, max_length=32, description="Middlewares for requests, in order."
    )
    inbound: list[Step] = Field(
        default_factory=_restoration, max_length=32, description="Middlewares for answers, in order."
    )
    streams: Literal["hold", "refuse"] = Field(
        default="hold",
        description="Streamed answers where `inbound` has more than `pii_restoration`: hold them back until they are "
        "whole and checked (8 MiB at most), or refuse the request. All others stream at once.",
    )

    def matches(self, provider: str, model: str) -> bool:
        """Return whether these middlewares are for ``model`` of ``provider``."""
        return _any_matches(self.providers, provider) and _any_matches(self.models, model)

    @property
    def restores(self) -> bool:
        """Return whether originals are put into answers."""
        return any(step.name == RESTORATION for step in self.inbound)


class RouteCondition(BaseModel):
    """What must have been found for a route to apply."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    types: list[TypeName] = Field(
        min_length=1,
        max_length=200,
        description="Types of findings (`MRN`, `IBAN`, …), or `contact`, `health`, `payment`, `secret` for several; "
        "one of them is enough.",
    )


class GatewayRoute(BaseModel):
    """Where a request goes, or that it is refused, because of what was found in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when: RouteCondition = Field(description="What must have been found.")
    provider: TargetName | None = Field(
        default=None, description="Send the request to this provider instead; it must have the same API."
    )
    model: Pattern | None = Field(
        default=None, description="With `provider`: the model there; null: the one that was asked for."
    )
    refuse: bool = Field(default=False, description="Refuse the request.")

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if (self.provider is None) is not self.refuse:
            raise ValueError("a route needs either provider, or refuse: true")
        if self.model is not None and self.provider is None:
            raise ValueError("model needs provider, to whose model the route leads")
        return self


class ToolArgumentRule(BaseModel):
    """Whether a tool that the model calls gets originals in its arguments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: Pattern = Field(description="Name of the tool; `*` is any text.")
    types: list[TypeName] | None = Field(
        default=None, max_length=200, description="Types of originals, as in `routes`; null: all."
    )
    restore: bool = Field(description="true: originals; false: handles.")


class GatewayPolicy(BaseModel):
    """What happens to requests to model providers and to their answers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["enforce", "observe"] = Field(
        default="enforce",
        description="observe: change nothing, and record what would have been hidden, before it is switched on.",
    )
    pipelines: list[GatewayPipeline] = Field(
        default_factory=list,
        max_length=200,
        description="Middlewares by provider and model; the first entry that matches applies. Without one: "
        "`pii_redaction` and `secret_redaction`, then `pii_restoration`.",
    )
    routes: list[GatewayRoute] = Field(
        default_factory=list,
        max_length=200,
        description="Other ways by what was found in a request; the first entry that applies counts.",
    )
    shared_scopes: list[Pattern] = Field(
        default_factory=list,
        max_length=200,
        description="Scopes that several keys and end users may name in `X-Sluice-Scope`; `*` is any text. Every "
        "other scope of the gateway belongs to one key and one end user.",
    )
    tool_arguments: list[ToolArgumentRule] = Field(
        default_factory=list,
        max_length=200,
        description="Which tools get originals; the first entry that matches tool and type counts. Without one, tools "
        "of the client get what stands in the same request, in safe positions, and tools of the provider nothing.",
    )
    stable_scope: bool = Field(
        default=False,
        description="Give `system` and `tools` handles of the whole tenant, so that all conversations share one "
        "cached prefix.",
    )
    unscanned: Literal["count", "block"] = Field(
        default="count",
        description="What cannot be scanned, such as images: pass it and count it in `X-Sluice-Unscanned`, or refuse.",
    )
    in_flight: int = Field(
        default=1_000,
        gt=0,
        le=10**6,
        description="Requests and streams of this tenant that may be under way at once at one API of the gateway, "
        "instead of `limits.in_flight`.",
    )
    note: bool = Field(default=True, description="Tell the model in a short constant note what handles are.")

    @model_validator(mode="before")
    @classmethod
    def _in_one_spelling(cls, document: Any) -> Any:
        """Take ``sharedScopes`` and the like for the names that a policy has."""
        if not isinstance(document, Mapping):
            return document
        spelled = {name: value for name, value in document.items() if name not in _SPELLINGS}
        return {**spelled, **{_SPELLINGS[name]: document[name] for name in _SPELLINGS if name in document}}

    def pipelines_of(self, provider: str, model: str | None) -> list[GatewayPipeline]:
        """Return the middlewares for ``model``, by the provider's own name, of ``provider``.

        Without a model, such as for a stored answer, the entries for all its models; see ``gateway_pipelines.joined``.
        """
        if model is not None:
            matching = (entry for entry in self.pipelines if entry.matches(provider, model))
            return [next(matching, GatewayPipeline())]
        entries = [entry for entry in self.pipelines if _any_matches(entry.providers, provider)]
        last = next((number for number, entry in enumerate(entries) if "*" in entry.models), None)
        return entries[: last + 1] if last is not None else [*entries, GatewayPipeline()]

    def route_of(self, labels: Collection[str]) -> GatewayRoute | None:
        """Return the route for a request in which findings with ``labels`` were made, or None."""
        return next((route for route in self.routes if types_match(route.when.types, labels)), None)

    def is_shared(self, scope: str) -> bool:
        """Return whether several keys and end users may use a scope."""
        return _any_matches(self.shared_scopes, scope)

    def restores(self, tool: str, label: str) -> bool | None:
        """Return whether a tool gets originals of a type, None where no entry says so."""
        for rule in self.tool_arguments:
            if Glob(rule.tool).matches(tool) and (rule.types is None or types_match(rule.types, [label])):
                return rule.restore
        return None


def _any_matches(patterns: Collection[str], name: str) -> bool:
    return any(Glob(pattern).matches(name) for pattern in patterns)
