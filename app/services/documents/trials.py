"""Try who finds what: search the documents as another reader would, and name what is found, never its text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.catalog.collections import EVERYBODY, principals_of
from app.core.contracts.engines import RetrievalQuery, Retriever
from app.core.errors import NotFoundError
from app.core.request import RequestInfo
from app.services.access.credentials import Authenticator
from app.services.audit.audit import AuditService

SEARCH_AS: Final = "documents.search_as"
_KEY: Final = "key:"


class FoundDocument(NamedTuple):
    """A document that a reader finds; ``relevance`` is 0..1."""

    document: str
    title: str
    collection: str
    source: str
    relevance: float


@dataclass(frozen=True, slots=True)
class SearchTrials:
    """Searches for operators, who decide who reads what: they see which documents a reader finds."""

    retriever: Retriever
    authenticator: Authenticator
    audit: AuditService

    async def search(
        self,
        caller: Caller,
        text: str,
        reader: str,
        request: RequestInfo | None = None,
        *,
        sources: Sequence[str] | None = None,
        limit: int = 10,
    ) -> list[FoundDocument]:
        """Return the documents that ``reader`` finds, best first; needs the role operator, and is on record.

        ``reader`` is as in access lists: ``key:<id>`` with the roles that the key has, ``role:<role>``, or ``*`` for
        whoever no list names. Raises NotFoundError for a key that is not there or has ended.
        """
        details: dict[str, str | int | bool] = {"reader": reader}
        async with self.audit.refusals(caller, SEARCH_AS, request, details=details):
            caller.require(Role.OPERATOR)
            principals = await self._principals(caller.tenant, reader)
        query = RetrievalQuery(
            caller.tenant, principals, text, None if sources is None else tuple(sources), limit
        )
        retrieval = await self.retriever.retrieve([query])
        documents = [
            FoundDocument(
                passage.document, passage.title, passage.collection, passage.source, passage.relevance
            )
            for passage in retrieval.passages[0]
        ]
        details["returned"] = len(documents)
        await self.audit.record(self.audit.new_event(caller, SEARCH_AS, OUTCOME_OK, request, details=details))
        return documents

    async def _principals(self, tenant: str, reader: str) -> frozenset[str]:
        if not reader.startswith(_KEY):
            return frozenset({EVERYBODY, reader})
        known_key = await self.authenticator.find(reader.removeprefix(_KEY))
        if known_key is None or known_key.ended or known_key.caller.tenant != tenant:
            raise NotFoundError("There is no such key, or it has ended.")
        return principals_of(known_key.caller)
