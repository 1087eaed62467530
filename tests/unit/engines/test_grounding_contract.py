"""What every judge and every checker of answers holds to, fakes included."""

import pytest

from app.core.contracts.engines import Claim
from app.core.contracts.grounding import CheckOptions
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge
from tests.fakes_grounding import FakeAnswerChecker, FakeGroundingJudge

SOURCE = "The bridge over the river Tay was opened in 1966. It is 2250 metres long."


@pytest.fixture(params=[FakeGroundingJudge, LexicalJudge])
def judge(request):
    return request.param()


@pytest.fixture(params=[FakeAnswerChecker, RuleChecker])
def checker(request):
    return request.param()


async def test_a_claim_that_is_in_its_evidence_scores_below_one_that_is_not(judge):
    restated = Claim("The bridge over the river Tay was opened in 1966.", (SOURCE,))
    invented = Claim("Elephants sleep in purple hammocks near Madrid.", (SOURCE,))
    grounding = await judge.judge([restated, invented])
    assert grounding.scores[0] < 0.5 < grounding.scores[1]
    assert grounding.report.name
    assert grounding.report.version
    assert not grounding.report.degraded


async def test_each_claim_is_judged_by_itself(judge):
    claims = [Claim(text, (SOURCE,)) for text in ("It is 2250 metres long.", "", "Nobody knows Zanzibar.")]
    together = (await judge.judge(claims)).scores
    alone = [(await judge.judge([claim])).scores[0] for claim in claims]
    assert together == alone
    assert all(0 <= score <= 1 for score in together)


async def test_no_claims_and_no_evidence_are_no_fault(judge):
    assert (await judge.judge([])).scores == []
    (score,) = (await judge.judge([Claim("The bridge is long.", ())])).scores
    assert score > 0.5


async def test_findings_come_by_answer_and_lie_within_it(checker):
    answers = ["See https://a.dev/x for it.", "", "Nothing to see."]
    found = await checker.check(answers, [SOURCE], CheckOptions())
    assert [len(one) for one in found] == [1, 0, 0]
    (link,) = found[0]
    assert answers[0][link.start : link.end] == "https://a.dev/x"
    assert checker.links(answers[0]) == [(link.start, link.end)]


async def test_only_what_is_asked_for_is_checked(checker):
    found = await checker.check(["See https://a.dev/x for it."], [SOURCE], CheckOptions(frozenset()))
    assert [list(one) for one in found] == [[]]


async def test_statements_are_sentences_of_the_answer(checker):
    answer = "The bridge over the river was opened in 1966. It is 2250 metres long."
    stated, nothing = await checker.statements([answer, ""])
    assert answer[stated.sentences[0][0] :].startswith("The bridge")
    assert len(stated.sentences) == 2
    assert stated.prose is not None
    assert (list(nothing.sentences), nothing.prose) == ([], None)


async def test_the_nearest_sentence_lies_in_the_sources(checker):
    (place,) = await checker.nearest(["The bridge was opened."], [SOURCE])
    assert SOURCE[place.start : place.end].startswith("The bridge over the river Tay was opened in 1966")
    assert list(await checker.nearest(["The bridge."], [])) == [None]
