"""A retriever that needs no database: words that a question and a document share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.core.contracts.engines import EngineReport, Retrieval, RetrievalQuery, RetrievedPassage


@dataclass(frozen=True)
class KeptDocument:
    """A document of the fake, and who may read it."""

    passage: RetrievedPassage
    tenant: str = "acme"
    readers: frozenset[str] = frozenset({"*"})


class FakeRetriever:
    """Ranks by the root of the share of the question's words; access and sources hold as the contract says."""

    def __init__(self, documents: Iterable[KeptDocument] = ()) -> None:
        self.documents = list(documents)
        self.asked: list[RetrievalQuery] = []

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        self.asked += queries
        return Retrieval([self._one(query) for query in queries], EngineReport("fake", "1"))

    def _one(self, query: RetrievalQuery) -> list[RetrievedPassage]:
        found = []
        words = {word.strip("?.,!").lower() for word in query.text.split()}
        for one in self.documents:
            passage = one.passage
            if one.tenant != query.tenant or one.readers.isdisjoint(query.principals):
                continue
            if query.sources is not None and not {passage.collection, passage.source} & {*query.sources}:
                continue
            said = {word.strip("?.,!:-").lower() for word in f"{passage.title} {passage.text}".split()}
            share = (len(words & said) / max(1, len(words))) ** 0.5
            if share > 0 and share >= query.min_relevance:
                found.append(replace(passage, relevance=share))
        return sorted(found, key=lambda one: -one.relevance)[: query.limit]
