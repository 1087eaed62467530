"""One list of the models that a door serves, from all providers of its kind."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, cast

from app.core.errors import ServiceError, UpstreamUnavailableError
from app.core.gateway.credentials import ProviderCredential, credential_for
from app.core.gateway.json_body import JsonBody
from app.core.gateway.kinds import ModelPage, ProviderKind
from app.core.gateway.providers import ProviderEntry, ProviderKindName, find_choice
from app.upstream.providers.client import ProviderClient
from app.upstream.providers.requests import ProviderEndpoint, ProviderRequest

LISTS: Final = "models"
_PATIENCE_S: Final = 10.0
"""Seconds to wait for one of several providers; models that its entry names are listed without its answer."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """What one provider answered, or what we make of all answers."""

    status: int
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class ModelLists:
    """Asks all providers of a kind for their models; ``request`` is the caller's, as it may leave."""

    client: ProviderClient
    kind: ProviderKind
    endpoints: Mapping[str, ProviderEndpoint]
    first: ProviderEndpoint
    credential: ProviderCredential
    request: ProviderRequest

    async def listed(self) -> ListAnswer:
        """Return one list of every name that leads to a provider.

        A provider that gives none is in it with the aliases and models of its entry. If none gives one, the answer is
        that of the first provider, or its error is raised.
        """
        endpoints = [place for place in self.endpoints.values() if place.entry.kind == self.kind.name]
        answers = await asyncio.gather(*(self._asked(place) for place in endpoints))
        usable = [answer for answer in answers if isinstance(answer, ListAnswer) and self._is_list(answer)]
        if not usable:
            return _result(answers[endpoints.index(self.first)])
        pages = [self._page(place.entry, answer) for place, answer in zip(endpoints, answers, strict=True)]
        body = self.kind.models(pages)
        if body is None:
            raise UpstreamUnavailableError("No provider answered with a list of models.")
        return ListAnswer(HTTPStatus.OK, usable[0].headers, body)

    def _is_list(self, answer: ListAnswer) -> bool:
        page = ModelPage(answer.body, lambda _name: False, {})
        return answer.status == HTTPStatus.OK and self.kind.models([page]) is not None

    def _page(self, entry: ProviderEntry, answer: ListAnswer | ServiceError) -> ModelPage:
        entries = [place.entry for place in self.endpoints.values()]
        kind = cast("ProviderKindName", self.kind.name)

        def shown(name: str) -> bool:
            choice = find_choice(entries, kind, name)
            return choice is not None and choice.provider.name == entry.name

        if isinstance(answer, ListAnswer) and self._is_list(answer):
            return ModelPage(answer.body, shown, entry.aliases)
        named = {name: name for name in entry.models if "*" not in name}
        return ModelPage(self.kind.empty_list, shown, {**named, **entry.aliases})

    async def _asked(self, place: ProviderEndpoint) -> ListAnswer | ServiceError:
        """Return the answer of one provider or why there is none; a key of the caller goes to the first alone."""
        patience_s = None if len(self.endpoints) == 1 else _PATIENCE_S
        try:
            is_first = place is self.first
            credential = (
                self.credential if is_first else credential_for(place.entry, None, chosen_by_model=False)
            )
            async with (
                asyncio.timeout(patience_s),
                self.client.send(place, self.request, credential) as answer,
            ):
                return ListAnswer(answer.status, answer.headers, await answer.whole())
        except ServiceError as error:
            return error
        except TimeoutError:
            return UpstreamUnavailableError(
                "The provider did not list its models in time.", details={"provider": place.entry.name}
            )


def named_as(body: bytes, model: str, alias: str) -> bytes:
    """Return what a provider says of ``model`` under the name by which the caller asked."""
    parsed = JsonBody.lenient(body.decode(errors="replace"))
    value: Any = parsed.value if parsed is not None else None
    if parsed is None or not isinstance(value, dict) or value.get("id") != model:
        return body
    return parsed.replaced({("id",): alias}).text.encode()


def _result(answer: ListAnswer | ServiceError) -> ListAnswer:
    if isinstance(answer, ServiceError):
        raise answer
    return answer
