"""The kinds of providers that have a door; a new one is a module of ``families`` and a row here."""

from collections.abc import Mapping
from typing import Final

from app.core.gateway.families import anthropic, openai
from app.core.gateway.provider_kind import (
    ApiFamily,
    HeaderRules,
    ModelPage,
    NotCoveredError,
    Operation,
    ProviderError,
    ProviderKind,
)

__all__ = [
    "KINDS",
    "ApiFamily",
    "HeaderRules",
    "ModelPage",
    "NotCoveredError",
    "Operation",
    "ProviderError",
    "ProviderKind",
]

KINDS: Final[Mapping[str, ProviderKind]] = {kind.name: kind for kind in (openai.KIND, anthropic.KIND)}
