"""Model providers: how to reach one, which models it has, and which of them a request goes to."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from app.core.access import KEY_PATTERN
from app.core.catalog.servers import SERVER_NAME
from app.core.errors import NotFoundError
from app.core.globs import Glob

PROVIDERS_CHANGED: Final = "providers"
PROVIDER_NAME: Final = SERVER_NAME
MAX_PROVIDERS: Final = 1000
PROVIDER_SECRETS: Final = frozenset({"api_key", "extra_headers"})
"""Members with credentials; they are sealed at rest and never shown."""

_ANSWER_BYTES: Final = 64 * 1024 * 1024
_NAMED_MODELS: Final = 20
_UNPRINTABLE: Final = re.compile(r"[^!-~]")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_OWN_HEADERS: Final = frozenset(
    {
        *("accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie"),
        *("expect", "forwarded", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_OWN_PREFIXES: Final = ("x-sluice-", "x-forwarded-", "proxy-", "sec-")

ProviderKindName = Literal["openai", "anthropic"]
ProviderName = Annotated[str, StringConstraints(pattern=rf"^{PROVIDER_NAME.pattern}$")]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x20\x7f]+$")]
HeaderName = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class ProviderLimits(BaseModel):
    """How long to wait for a provider, and how much to take from it."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    connect_s: Seconds = Field(default=10, alias="connectS", description="Seconds to connect.")
    first_byte_s: Seconds = Field(
        default=300, alias="firstByteS", description="Seconds from the request to the head of the answer."
    )
    idle_s: Seconds = Field(default=120, alias="idleS", description="Seconds between two parts of an answer.")
    total_s: Seconds = Field(default=1800, alias="totalS", description="Seconds for the whole answer.")
    max_answer_bytes: int = Field(
        default=_ANSWER_BYTES,
        ge=1024,
        le=1024 * 1024 * 1024,
        alias="maxAnswerBytes",
        description="Size of a whole answer or stream, in bytes; a larger one is cut off.",
    )


class ProviderEntry(BaseModel):
    """A provider in the form of the declarative file and of REST.

    ``order`` decides between providers that have the same model: the lowest first, then by name. None: behind those
    that exist.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: ProviderName = Field(description="Name of the provider in policies and records.")
    kind: ProviderKindName = Field(
        description="API that it speaks: `openai` (also vLLM, Ollama, Azure and others) or `anthropic`."
    )
    base_url: str = Field(
        alias="baseUrl",
        max_length=2048,
        description="Address in front of its paths: with `/v1` for `openai`, without it for `anthropic`.",
    )
    api_key: str | None = Field(
        default=None, alias="apiKey", max_length=4096, repr=False, description="Secret: never shown again."
    )
    extra_headers: dict[HeaderName, Annotated[str, StringConstraints(max_length=4096)]] = Field(
        default_factory=dict,
        alias="extraHeaders",
        max_length=32,
        repr=False,
        description="Headers of every request to it. Secret: values are never shown again.",
    )
    models: list[ModelName] = Field(
        default_factory=lambda: ["*"],
        min_length=1,
        max_length=1000,
        description="Models that may be used, by the provider's names; `*` stands for any characters.",
    )
    aliases: dict[ModelName, ModelName] = Field(
        default_factory=dict, max_length=1000, description="Names for its models: `{alias: model}`."
    )
    order: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Where several providers have a model, the lowest number is used.",
    )
    caller_key: bool = Field(
        default=False,
        alias="callerKey",
        description="Whether callers may bring a key of their own for this provider; the key of Sluice then comes "
        "in `X-Sluice-Key`.",
    )
    allowed_networks: list[Annotated[str, StringConstraints(max_length=64)]] = Field(
        default_factory=list,
        alias="allowedNetworks",
        max_length=64,
        description="Networks (CIDR) that are not public where this provider may be.",
    )
    limits: ProviderLimits = Field(
        default_factory=ProviderLimits, description="How long to wait, and how much to take."
    )
    description: str | None = Field(default=None, max_length=4096, description="For people.")

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        if _UNPRINTABLE.search(url) or "\\" in url:
            raise ValueError("baseUrl must be plain ASCII without spaces; encode other characters with %")
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("baseUrl must begin with https:// or http:// and name a host")
        if parts.username is not None or parts.password is not None or "%" in parts.netloc:
            raise ValueError("baseUrl must not contain credentials; put the key into apiKey")
        if parts.query or parts.fragment or "?" in url or "#" in url:
            raise ValueError("baseUrl must end with its path; remove what follows ? or #")
        if parts.port == 0:  # a port that is no number raises ValueError here
            raise ValueError("the port in baseUrl must be between 1 and 65535")
        return url.rstrip("/")

    @field_validator("api_key")
    @classmethod
    def _is_a_key(cls, key: str | None) -> str | None:
        if key is not None and _UNPRINTABLE.search(key):
            raise ValueError("apiKey must be one word of printable ASCII, as the provider shows it")
        if key is not None and KEY_PATTERN.search(key):
            raise ValueError("apiKey is a key of Sluice (slc_…); supply the key that the provider gave you")
        return key or None

    @field_validator("extra_headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER.fullmatch(name) or _CONTROL.search(value) or not value.isascii():
                raise ValueError("extraHeaders need names of one word and values of one line of ASCII")
            if name.lower() in _OWN_HEADERS or name.lower().startswith(_OWN_PREFIXES):
                raise ValueError(
                    "extraHeaders must not hold headers of the connection, cookies or X-Sluice-*"
                )
            if KEY_PATTERN.search(value):
                raise ValueError("extraHeaders must not hold a key of Sluice (slc_…)")
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("extraHeaders must name each header once, in one spelling")
        return headers

    @field_validator("allowed_networks")
    @classmethod
    def _are_networks(cls, networks: list[str]) -> list[str]:
        for text in networks:
            try:
                ip_network(text, strict=False)
            except ValueError:
                raise ValueError("allowedNetworks must be networks such as 10.0.0.0/8 or fd00::/8") from None
        return networks

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        if self.kind == "anthropic" and urlsplit(self.base_url).path.endswith("/v1"):
            raise ValueError("for kind anthropic, baseUrl ends before /v1; remove /v1 from it")
        for alias, model in self.aliases.items():
            if not self.has(model):
                raise ValueError(
                    "an alias in aliases leads to a model that models does not allow; add that model to models"
                )
            if model in self.aliases and alias != model:
                raise ValueError("an alias in aliases leads to another alias; name the model itself")
        return self

    def has(self, model: str) -> bool:
        """Return whether ``model``, by the provider's own name, may be used."""
        return any(Glob(pattern).matches(model) for pattern in self.models)

    def resolve(self, model: str) -> str | None:
        """Return the provider's own name of what a caller calls ``model``, None if it may not be used."""
        if model in self.aliases:
            return self.aliases[model]
        return model if self.has(model) else None


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The provider of a request, and the model's name there."""

    provider: ProviderEntry
    model: str


def in_order(providers: Iterable[ProviderEntry]) -> list[ProviderEntry]:
    """Return providers in the order in which they are asked for a model."""
    last = 1_000_001
    return sorted(providers, key=lambda entry: (last if entry.order is None else entry.order, entry.name))


def find_choice(providers: Sequence[ProviderEntry], kind: ProviderKindName, model: str) -> ModelChoice | None:
    """Return the first provider of a kind that has ``model``, or None; ``providers`` are in order."""
    for entry in providers:
        if entry.kind == kind and (resolved := entry.resolve(model)) is not None:
            return ModelChoice(entry, resolved)
    return None


def choose_provider(providers: Sequence[ProviderEntry], kind: ProviderKindName, model: str) -> ModelChoice:
    """Return the first provider of a kind that has ``model``; ``providers`` are in order.

    Raises NotFoundError that names what there is for this tenant.
    """
    choice = find_choice(providers, kind, model)
    if choice is not None:
        return choice
    names = model_names(providers, kind)
    if not any(entry.kind == kind for entry in providers):
        raise NotFoundError(
            f"This tenant has no provider of kind {kind}; an operator adds one with PUT /api/v1/providers/NAME.",
            details={"kind": kind},
        )
    more = f" and {len(names) - _NAMED_MODELS} more" if len(names) > _NAMED_MODELS else ""
    raise NotFoundError(
        f"No provider of this tenant has that model. There are: {', '.join(names[:_NAMED_MODELS])}{more}.",
        details={"kind": kind, "models": names[:_NAMED_MODELS]},
    )


def provider_named(
    providers: Sequence[ProviderEntry], kind: ProviderKindName, name: str, model: str
) -> ModelChoice:
    """Return the choice of a rule that leads to the provider ``name``; it must speak the caller's API.

    Raises NotFoundError if there is none or it lacks the model: a rule never falls back on another provider.
    """
    entry = next((entry for entry in providers if entry.name == name), None)
    if entry is None or entry.kind != kind:
        raise NotFoundError(
            f"A rule of the policy leads to the provider {name}, which this tenant does not have with kind {kind}.",
            details={"provider": name, "kind": kind},
        )
    resolved = entry.resolve(model)
    if resolved is None:
        raise NotFoundError(
            f"A rule of the policy leads to the provider {name}, which does not have that model; name one of its "
            "models in the rule.",
            details={"provider": name},
        )
    return ModelChoice(entry, resolved)


def model_names(providers: Sequence[ProviderEntry], kind: ProviderKindName) -> list[str]:
    """Return aliases and patterns of models of a kind, in order and each once."""
    names: dict[str, None] = {}
    for entry in providers:
        if entry.kind == kind:
            names.update(dict.fromkeys([*entry.aliases, *entry.models]))
    return list(names)


def reached(entry: ProviderEntry) -> Mapping[str, Any]:
    """Return the part of an entry that decides where its secrets are sent."""
    return {"base_url": entry.base_url, "allowed_networks": sorted(entry.allowed_networks)}
