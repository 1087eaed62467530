"""The embedded ranker: steps, what it remembers, and what it does where the encoder fails."""

import asyncio
from collections.abc import Sequence

import numpy as np

from app.core.contracts.engines import Embeddings, EngineReport, ToolCandidate
from app.core.errors import UpstreamUnavailableError
from app.engines.encoder import EncoderUnavailableError
from app.engines.ranking.ranker import EmbeddedToolRanker

TOOLS = tuple(
    ToolCandidate(name, text)
    for name, text in (
        ("bookFlight", "Book a seat on a flight."),
        ("getWeather", "Get the weather forecast of a city."),
        ("translateText", "Translate a text into another language."),
        ("createInvoice", "Create an invoice for a customer."),
        ("scanNetwork", "Scan a network for open ports."),
        ("playSong", "Play a song or an album."),
    )
)


class CountingEmbedder:
    """Vectors of the letters of a text; tells what it was asked, waits, fails or is another engine on demand."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.report = EngineReport("letters", "1")

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.asked += texts
        return Embeddings([self._vector(text) for text in texts], self.report)

    @staticmethod
    def _vector(text: str) -> bytes:
        counts = np.bincount([ord(letter) % 32 for letter in text.lower() or "?"], minlength=32)
        return (counts / np.linalg.norm(counts)).astype("<f4").tobytes()


async def names_of(ranker: EmbeddedToolRanker, query: str, count: int) -> set[str]:
    ranking = await ranker.rank([query], TOOLS)
    return {TOOLS[place].name for place in ranking.order[0][:count]}


async def test_each_step_of_a_request_gets_its_tool() -> None:
    query = (
        "I am off to Rome and need your help. First, book a flight for two people from Oslo on the third of May. "
        "Then, get the weather of that week, and create an invoice for the customer Smith; it is about the flight."
    )
    assert await names_of(EmbeddedToolRanker(), query, 3) == {"bookFlight", "getWeather", "createInvoice"}


async def test_words_that_mean_the_same_and_other_forms_of_words_are_found() -> None:
    ranker = EmbeddedToolRanker()
    assert await names_of(ranker, "is it going to rain?", 1) == {"getWeather"}
    assert await names_of(ranker, "translating these texts", 1) == {"translateText"}
    assert await names_of(ranker, "put the track on", 1) == {"playSong"}


async def test_scores_compare_between_requests() -> None:
    fitting, vague = (
        await EmbeddedToolRanker().rank(["translate this text", "what do you think?"], TOOLS)
    ).scores
    assert max(fitting) > 0.3
    assert max(vague) < 0.05


async def test_a_list_is_embedded_once_and_a_changed_one_costs_what_changed() -> None:
    embedder = CountingEmbedder()
    ranker = EmbeddedToolRanker(embedder)
    assert (await ranker.rank(["a"], TOOLS)).report.name == "embedded-hybrid"
    assert len(embedder.asked) == len(TOOLS) + 1
    await ranker.rank(["b"], list(TOOLS))
    assert len(embedder.asked) == len(TOOLS) + 2
    await ranker.rank(["c"], (*TOOLS, ToolCandidate("new")))
    assert embedder.asked[-2:] == ["new: ", "c"]


def many_tools() -> tuple[ToolCandidate, ...]:
    """Return more tools than are embedded whole: those about the weather, then about flights, then others."""
    subjects = [("weather", 300), ("flight", 300), ("stock", 3000)]
    return tuple(
        ToolCandidate(f"{subject}{number}", f"Read the {subject} of region {number}.")
        for subject, count in subjects
        for number in range(count)
    )


async def test_of_a_long_list_only_what_words_rank_well_is_embedded_and_once() -> None:
    embedder, tools = CountingEmbedder(), many_tools()
    ranker = EmbeddedToolRanker(embedder)
    first = await ranker.rank(["the weather"], tools)
    assert first.report.name == "embedded-hybrid"
    assert sorted(first.order[0]) == list(range(len(tools)))
    assert len(embedder.asked) == 128 + 1
    assert all(text.startswith("weather") for text in embedder.asked[:-1])
    await ranker.rank(["the weather"], tools)
    assert len(embedder.asked) == 128 + 2
    await ranker.rank(["the flight"], tools)
    assert all(text.startswith("flight") for text in embedder.asked[128 + 2 : -1])
    assert len(embedder.asked) == 2 * 128 + 3


async def test_in_a_long_list_meaning_decides_among_those_that_words_rank_well() -> None:
    tools = (*many_tools(), ToolCandidate("weatherAtSea", "Read the weather of the sea."))
    ranking = await EmbeddedToolRanker(CountingEmbedder()).rank(["the weather at sea"], tools)
    by_words = await EmbeddedToolRanker().rank(["the weather at sea"], tools)
    assert ranking.order[0][0] == by_words.order[0][0] == len(tools) - 1
    best = set(ranking.order[0][:128])
    assert all(tools[place].name.startswith("weather") for place in best)
    assert ranking.order[0][1:128] != by_words.order[0][1:128]


async def test_requests_that_come_together_embed_no_tool_of_a_long_list_twice() -> None:
    embedder, tools = CountingEmbedder(), many_tools()
    ranker = EmbeddedToolRanker(embedder)
    await ranker.rank(["the stock"], tools)  # so that all of them soon wait for the encoder
    embedder.gate.clear()
    texts = ("the weather", "the weather", "the flight")
    together = asyncio.gather(*(ranker.rank([text], tools) for text in texts))
    await asyncio.sleep(0.3)
    embedder.gate.set()
    assert {ranking.report.name for ranking in await together} == {"embedded-hybrid"}
    of_tools = [text for text in embedder.asked if ": " in text]
    assert len(of_tools) == len(set(of_tools)) == 3 * 128


async def test_words_serve_until_a_new_list_is_embedded() -> None:
    embedder = CountingEmbedder()
    embedder.gate.clear()
    ranker = EmbeddedToolRanker(embedder, patience_s=0.01)
    first = await ranker.rank(["book a flight"], TOOLS)
    assert first.report.name == "embedded-lexical" and not first.report.degraded
    assert TOOLS[first.order[0][0]].name == "bookFlight"
    embedder.gate.set()
    for _ in range(100):
        if (await ranker.rank(["book a flight"], TOOLS)).report.name == "embedded-hybrid":
            break
    assert embedder.asked.count(embedder.asked[0]) == 1


async def test_without_an_encoder_words_serve_and_the_report_says_so() -> None:
    embedder = CountingEmbedder()
    embedder.error = EncoderUnavailableError("not installed")
    report = (await EmbeddedToolRanker(embedder).rank(["a"], TOOLS)).report
    assert (report.name, report.degraded) == ("embedded-lexical", False)


async def test_an_encoder_that_fails_degrades_and_is_asked_again() -> None:
    embedder = CountingEmbedder()
    ranker = EmbeddedToolRanker(embedder)
    embedder.error = UpstreamUnavailableError("down")
    for _ in range(2):
        report = (await ranker.rank(["a"], TOOLS)).report
        assert (report.name, report.degraded) == ("embedded-lexical", True)
    embedder.error = None
    assert (await ranker.rank(["a"], TOOLS)).report.name == "embedded-hybrid"
    embedder.error = UpstreamUnavailableError("down")
    assert (await ranker.rank(["a"], TOOLS)).report.degraded


async def test_vectors_of_two_encoders_are_never_compared() -> None:
    embedder = CountingEmbedder()
    ranker = EmbeddedToolRanker(embedder)
    await ranker.rank(["a"], TOOLS)
    embedder.report = EngineReport("other", "2", degraded=True)
    changed = await ranker.rank(["a"], TOOLS)
    assert (changed.report.name, changed.report.degraded) == ("embedded-lexical", True)
    again = await ranker.rank(["a"], TOOLS)
    assert (again.report.name, again.report.degraded) == ("embedded-hybrid", True)
    assert again.report.version.endswith("+2")


async def test_lists_are_forgotten_when_there_are_many(monkeypatch) -> None:
    monkeypatch.setattr("app.engines.ranking.ranker._BYTES_CACHED", 50_000)
    monkeypatch.setattr("app.engines.ranking.memory._MOST_TOOLS", 12)
    ranker = EmbeddedToolRanker()
    for number in range(30):
        await ranker.rank(["a"], tuple(ToolCandidate(f"tool{number}x{one}") for one in range(10)))
    assert 1 <= len(ranker._lists) < 5
    assert len(ranker._seen) <= len(ranker._lists)
    assert len(ranker._tools._tools) == 12


async def test_of_a_long_text_the_ends_are_embedded_and_a_request_at_either_is_found():
    material = "The report says that sales rose in the north and fell in the south. " * 40
    for text in (
        f"{material}Translate this text into another language.",
        f"Book a seat on a flight. {material}",
    ):
        embedder = CountingEmbedder()
        ranker = EmbeddedToolRanker(embedder)
        await ranker.rank(["hello"], TOOLS)
        embedder.asked.clear()
        # As app.core.tools.requests hands it over: the beginning and the end of what was said.
        ranking = await ranker.rank([f"{text[:1000]}\n{text[-990:]}"], TOOLS)
        assert sum(map(len, embedder.asked)) < 300
        assert TOOLS[ranking.order[0][0]].name == ("translateText" if "Translate" in text else "bookFlight")
