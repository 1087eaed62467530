"""What every ranker of tools holds to, the fake included."""

import pytest

from app.core.contracts.engines import ToolCandidate
from app.engines.encoder import Encoder
from app.engines.ranking.ranker import EmbeddedToolRanker
from tests.fakes import FakeToolRanker

ENCODER = Encoder()
TOOLS = (
    ToolCandidate("send_email", "Send an email to someone.", ("to Who gets it", "body What it says")),
    ToolCandidate("weatherForecast", "Tells the weather of the next days."),
    ToolCandidate("convert-currency", "Converts an amount of money.", ("amount", "from", "to")),
)


@pytest.fixture(params=["fake", "words", "words and meaning"])
def ranker(request):
    if request.param == "fake":
        return FakeToolRanker()
    return EmbeddedToolRanker(ENCODER if request.param == "words and meaning" else None, patience_s=60)


async def test_the_tool_that_a_request_names_comes_first(ranker):
    ranking = await ranker.rank(["send an email to Ann", "convert the currency"], TOOLS)
    assert [order[0] for order in ranking.order] == [0, 2]
    assert ranking.report.name and ranking.report.version and not ranking.report.degraded


async def test_scores_lie_between_0_and_1_and_fall_along_the_order(ranker):
    queries = ["weather forecast for Oslo", "", "zzz", "send an email, then convert the currency of it"]
    ranking = await ranker.rank(queries, TOOLS)
    assert len(ranking.scores) == len(ranking.order) == len(queries)
    for scores, order in zip(ranking.scores, ranking.order, strict=True):
        assert sorted(order) == [0, 1, 2]
        assert all(0 <= score <= 1 for score in scores)
        assert [scores[place] for place in order] == sorted(scores, reverse=True)


async def test_a_query_is_ranked_by_itself(ranker):
    queries = ["send an email", "weather", "money"]
    together = (await ranker.rank(queries, TOOLS)).scores
    alone = [(await ranker.rank([query], TOOLS)).scores[0] for query in queries]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


async def test_no_tools_and_no_queries_give_empty_rankings(ranker):
    assert (await ranker.rank([], TOOLS)).scores == []
    nothing = await ranker.rank(["send"], [])
    assert (nothing.scores, nothing.order) == ([[]], [[]])


async def test_one_tool_alone_scores_by_what_it_is_worth(ranker):
    fitting, other = (await ranker.rank(["send email", "when was Rome built"], TOOLS[:1])).scores
    assert fitting[0] > other[0]


async def test_equal_tools_and_odd_texts_are_ranked_too(ranker):
    odd = [
        ToolCandidate("a"),
        ToolCandidate("a"),
        ToolCandidate("\ud800", "\x00" * 50, ("", " ", "x" * 9999)),
    ]
    ranking = await ranker.rank(["\udfff", "a " * 5000, "\n\n1. \n- "], odd)
    assert all(sorted(order) == [0, 1, 2] for order in ranking.order)
