"""Ask a provider once whether it answers, and which models it lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.core.errors import ServiceError
from app.core.gateway.credentials import ProviderCredential
from app.core.gateway.providers import ProviderEntry, ProviderLimits
from app.core.strictjson import loads
from app.upstream.providers.client import ProviderClient
from app.upstream.providers.requests import ProviderEndpoint, ProviderRequest

_PATHS: Final = {"openai": "/models", "anthropic": "/v1/models"}
_OK: Final = 200
_CREDENTIALS: Final = frozenset({401, 403})
_MOST_MODELS: Final = 1000
_LONGEST_NAME: Final = 200
_LIMITS: Final = {"firstByteS": 20, "idleS": 20, "totalS": 30, "maxAnswerBytes": 4 * 1024 * 1024}


@dataclass(frozen=True, slots=True)
class ProviderTrial:
    """The result: ``status`` of the answer, None without one; ``models`` that it lists and its entry allows."""

    ready: bool
    status: int | None = None
    models: Sequence[str] = ()
    error: str | None = None


async def tried(
    client: ProviderClient, endpoint: ProviderEndpoint, credential: ProviderCredential
) -> ProviderTrial:
    """List the provider's models once; a failure is part of the result, in our own words."""
    entry = endpoint.entry
    limits = ProviderLimits.model_validate({**_LIMITS, "connectS": min(entry.limits.connect_s, 10)})
    patient = ProviderEndpoint(
        endpoint.tenant, entry.model_copy(update={"limits": limits}), endpoint.networks
    )
    request = ProviderRequest("GET", _PATHS[entry.kind], headers=(("Accept", "application/json"),))
    try:
        async with client.send(patient, request, credential) as answer:
            if answer.status != _OK:
                return ProviderTrial(ready=False, status=answer.status, error=_refusal(entry, answer.status))
            listing = await answer.whole()
    except ServiceError as error:
        return ProviderTrial(ready=False, error=error.message)
    models = _models(listing)
    if models is None:
        return ProviderTrial(
            ready=False, status=_OK, error=f"Provider {entry.name!r} answers, but not with a list of models."
        )
    return ProviderTrial(
        ready=True, status=_OK, models=[name for name in models if entry.has(name)][:_MOST_MODELS]
    )


def _refusal(entry: ProviderEntry, status: int) -> str:
    if status in _CREDENTIALS:
        return (
            f"Provider {entry.name!r} refuses the key that is stored (HTTP {status}); supply another apiKey."
        )
    return f"Provider {entry.name!r} answered with HTTP status {status}; check baseUrl and kind."


def _models(listing: bytes) -> list[str] | None:
    """Return the names in a list of models, None if it is none; names that no model has are left out."""
    try:
        document: Any = loads(listing)
    except ServiceError:
        return None
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return None
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)]
    return [
        name
        for name in names
        if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()
    ]
