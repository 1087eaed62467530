"""The middleware that holds an answer against what came before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.content.context import Context
from app.core.errors import InvalidArgumentsError
from app.engines.grounding.checker import RuleChecker
from app.engines.grounding.judge import LexicalJudge
from app.middlewares.hallucination_detection.middleware import (
    HallucinationDetection,
    HallucinationDetectionArguments,
)
from tests.fakes import engines
from tests.fakes_grounding import FakeLinkProbe

REAL = engines(grounding=LexicalJudge(), answers=RuleChecker())
KNOWN = (
    "Sluice 2.1 was released on 4 October 2025 by Jane Smithson in Berlin. The guide is at "
    "https://docs.sluice.dev/guide/installation and a licence costs $1,200 a year. The team has 14 engineers. "
    'The manual says "Never store secrets in the repository of a project". [PERSON_1] wrote it.'
)
FAITHFUL = "Sluice 2.1 was released on October 4, 2025 by Jane Smithson in Berlin."
MADE_UP = "The software runs on every ship of the Norwegian navy since the summer of 1931."


async def detected(items, bundle=REAL, **arguments):
    given_arguments = HallucinationDetectionArguments.model_validate(arguments)
    outcome = await HallucinationDetection(bundle).apply(Context.parse(items), given_arguments)
    return outcome.context.to_json(), outcome.metadata


def talk(answer, known=KNOWN):
    return [{"role": "user", "content": known}, {"role": "assistant", "content": answer}]


def kinds(metadata):
    return [one["kind"] for one in metadata["findings"]]


async def test_an_answer_that_restates_its_source_is_supported_and_unchanged():
    items = talk(FAITHFUL)
    content, metadata = await detected(items)
    assert content == items
    assert metadata["supported"] is True
    assert metadata["score"] < 0.5
    assert metadata["findings"] == []
    assert "rerunHint" not in metadata


async def test_a_made_up_answer_is_not_and_a_note_says_so_behind_it():
    content, metadata = await detected(talk(MADE_UP))
    assert metadata["supported"] is False
    assert metadata["score"] > 0.8
    assert "sentence" in kinds(metadata)
    assert content[1]["content"].startswith(
        f"{MADE_UP}\n\n[Note: the context does not support parts of this answer"
    )
    assert metadata["rerunHint"].startswith("Parts of your last answer have no support.")


async def test_report_changes_nothing():
    items = talk(MADE_UP)
    content, metadata = await detected(items, action="report")
    assert content == items
    assert metadata["supported"] is False


async def test_spans_are_offsets_in_the_text_of_the_item():
    answer = f"{FAITHFUL} [PERSON_2] wrote it."
    _, metadata = await detected(talk(answer), checks=["handles"], action="report")
    (finding,) = metadata["findings"]
    assert answer[finding["start"] : finding["end"]] == "[PERSON_2]"
    assert finding["item"] == 1
    assert finding["pointer"] == "/1/content"
    place = finding["evidence"]
    assert (place["source"], place["item"]) == ("context", 0)
    assert KNOWN[place["start"] : place["end"]] == "[PERSON_1]"


async def test_fix_mends_a_broken_link_a_misquotation_and_a_misspelt_name():
    answer = (
        "See https://docs.sluice.dev/guide/instalation by Jane Smithsen. "
        'It says "Never store secrets in the repo of a project".'
    )
    content, metadata = await detected(talk(answer), action="fix")
    assert content[1]["content"] == (
        "See https://docs.sluice.dev/guide/installation by Jane Smithson. "
        'It says "Never store secrets in the repository of a project".'
    )
    assert [one["kind"] for one in metadata["findings"] if one.get("fixed")] == ["url", "name", "quote"]


@given(
    st.lists(
        st.sampled_from(
            [*KNOWN.split(), "instalation", "Smithsen", "https://docs.sluice.dev/guid", "\n", '"']
        )
    )
)
async def test_fix_changes_no_character_outside_its_findings(words):
    answer = " ".join(words)
    content, metadata = await detected(talk(answer), action="fix", checks=["urls", "quotes", "names"])
    made = content[1]["content"]
    rebuilt, position = [], 0
    for one in metadata["findings"]:
        if one.get("fixed"):
            rebuilt += [answer[position : one["start"]], one["fix"]]
            position = one["end"]
    assert made == "".join([*rebuilt, answer[position:]])


async def test_evidence_stands_in_for_the_context():
    items = talk(MADE_UP, known="What do you know?")
    _, without = await detected(items)
    _, with_it = await detected(items, evidence=[MADE_UP])
    _, as_item = await detected(items, evidence=[{"type": "text", "text": MADE_UP}])
    assert without["supported"] is False
    assert with_it["supported"] is as_item["supported"] is True


async def test_a_link_of_the_user_is_known_even_where_evidence_is_given():
    answer = "Look at https://docs.sluice.dev/guide/installation for more."
    _, metadata = await detected(talk(answer), evidence=["Look for more."], checks=["urls"])
    assert metadata["findings"] == []


async def test_evidence_that_is_no_item_is_refused_where_it_stands():
    with pytest.raises(InvalidArgumentsError) as caught:
        await detected(talk(FAITHFUL), evidence=["fine", {"type": "text"}])
    assert caught.value.details["pointer"] == "/arguments/evidence/1/text"


async def test_an_answer_without_anything_before_it_is_judged_by_what_stands_alone():
    _, metadata = await detected(
        [{"role": "assistant", "content": f"{MADE_UP} [PERSON_3]\n```json\n{{oops\n```"}]
    )
    assert kinds(metadata) == ["code"]
    assert "only code and packages" in metadata["warnings"][0]
    _, plain = await detected([{"role": "assistant", "content": MADE_UP}])
    assert (plain["supported"], plain["score"]) == (True, 0.0)


async def test_a_context_without_an_answer_is_said_to_have_none():
    items = [{"role": "user", "content": MADE_UP}]
    content, metadata = await detected(items)
    assert content == items
    assert metadata["supported"] is True
    assert metadata["warnings"]


async def test_without_roles_the_last_text_is_the_answer():
    items = [{"type": "text", "text": KNOWN}, {"type": "text", "text": "See https://other.dev/x now."}]
    content, metadata = await detected(items, checks=["urls"])
    assert [one["item"] for one in metadata["findings"]] == [1]
    assert content[0] == items[0]
    assert content[1]["text"].startswith(items[1]["text"])


async def test_only_the_last_answer_is_judged_and_what_follows_it_is_no_evidence():
    items = [*talk(MADE_UP), *talk(FAITHFUL), {"role": "user", "content": MADE_UP}]
    _, metadata = await detected(items, action="report")
    assert metadata["supported"] is True
    late = [*talk(MADE_UP), {"role": "user", "content": MADE_UP}]
    assert (await detected(late))[1]["supported"] is False


async def test_values_of_structured_results_are_evidence():
    result = {"city": "Oslo", "windSpeed": 14, "temperature": 22.5}
    for block in (
        {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": result},
        {"type": "text", "text": '{"city": "Oslo", "windSpeed": 14, "temperature": 22.5}'},
    ):
        items = [
            block,
            {"role": "assistant", "content": "In Oslo the wind speed is 14 and the temperature 22.5."},
        ]
        _, metadata = await detected(items, checks=["numbers", "names"])
        assert metadata["findings"] == []
        items[1]["content"] = "In Oslo the wind speed is 41."
        _, metadata = await detected(items, checks=["numbers", "names"])
        assert kinds(metadata) == ["number"]


async def test_what_tools_are_called_with_is_reported_and_never_changed():
    call = {
        "type": "tool_use",
        "id": "1",
        "name": "open",
        "input": {
            "url": "https://docs.sluice.dev/guide/instalation",
            "order": "ORD-99887",
            "day": "2026-01-05",
        },
    }
    items = [{"role": "user", "content": KNOWN}, {"role": "assistant", "content": [call]}]
    content, metadata = await detected(items, action="fix")
    assert content == items
    assert kinds(metadata) == ["url", "identifier"]


async def test_an_identifier_that_one_of_several_sources_has_is_not_invented():
    call = {
        "type": "tool_use",
        "id": "1",
        "name": "open",
        "input": {"order": "ORD-99887", "next": "ORD-11223"},
    }
    sources = [{"role": "user", "content": text} for text in ("Where is ord-99887?", "It is raining.")]
    _, metadata = await detected([*sources, {"role": "assistant", "content": [call]}])
    assert kinds(metadata) == ["identifier"]
    assert metadata["findings"][0]["pointer"].endswith("/next")


async def test_a_note_is_never_put_into_data():
    items = talk('{"site": "https://nowhere.sluice.org/x", "text": "' + MADE_UP + '"}')
    content, metadata = await detected(items)
    assert metadata["supported"] is False
    assert content == items


async def test_a_fix_within_json_is_spelled_as_json():
    items = talk('{"text": "See https://docs.sluice.dev/guide/instalation\\n"}')
    content, _ = await detected(items, action="fix")
    assert content[1]["content"] == '{"text": "See https://docs.sluice.dev/guide/installation\\n"}'


async def test_messages_and_hints_hold_no_content():
    answer = f"{MADE_UP} Zanzibar has 7731 boats. https://zanzibar.dev/x [PERSON_9]"
    _, metadata = await detected(talk(answer), action="report")
    said = " ".join([metadata["rerunHint"], *(one["message"] for one in metadata["findings"])])
    assert not {"zanzibar", "7731", "norwegian", "person_9"} & set(said.lower().replace(".", " ").split())


async def test_packages_are_held_against_the_index_of_the_caller():
    answer = "Run `pip install requsts numpy`."
    _, metadata = await detected(talk(answer), packages={"pypi": ["requests", "numpy"]}, checks=["packages"])
    (finding,) = metadata["findings"]
    assert finding["suggestions"] == ["requests"]
    assert finding["fix"] is None
    assert (await detected(talk(answer), checks=["packages"]))[1]["findings"] == []


async def test_addresses_are_asked_only_where_the_operator_allows_it():
    answer = "Look at https://docs.sluice.dev/guide/installation for more."
    with pytest.raises(InvalidArgumentsError) as caught:
        await detected(talk(answer), checkUrls=True)
    assert caught.value.details["pointer"] == "/arguments/checkUrls"
    probing = engines(links=FakeLinkProbe("https://docs.sluice.dev/guide/installation"))
    _, metadata = await detected(talk(answer), probing, checkUrls=True, checks=["urls"])
    assert [one["message"] for one in metadata["findings"]] == ["Nothing answers at this address."]
    _, metadata = await detected(talk(answer), probing, checks=["urls"])
    assert metadata["findings"] == []


async def test_the_threshold_decides():
    _, lenient = await detected(talk(FAITHFUL), threshold=1.0)
    _, strict = await detected(talk(FAITHFUL), threshold=0.01)
    assert lenient["supported"] is True
    assert strict["supported"] is False


async def test_courtesies_questions_and_admissions_are_supported():
    for answer in (
        "You're welcome! Let me know if you need anything else.",
        "The context does not mention who paid for it.",
        "I don't know.",
        "Hello! How can I help you?",
    ):
        _, metadata = await detected(talk(answer))
        assert metadata["supported"] is True, answer
        assert metadata["findings"] == []


async def test_the_engine_is_named_and_counts_are_kept():
    outcome = await HallucinationDetection(REAL).apply(
        Context.parse(talk(MADE_UP)), HallucinationDetectionArguments(action="report")
    )
    assert outcome.engine is not None
    assert outcome.engine.name == "embedded-grounding"
    assert outcome.counts["sentence"] == 1
    assert outcome.audit_details == {"supported": False, "fixed": 0}


async def test_evidence_stands_in_for_the_context_in_every_rule_that_knows_its_sources():
    answer = 'It says "Never keep your keys in the garden of a friend". It was 1931, and 14 ships.'
    quoted = {"checks": ["quotes", "numbers"], "action": "report"}
    _, without = await detected(talk(answer), **quoted)
    _, given = await detected(talk(answer), evidence=[{"type": "text", "text": answer}], **quoted)
    assert "quote" in kinds(without)
    assert kinds(given) == []
    _, other = await detected(talk(KNOWN), evidence=[{"type": "text", "text": "Nothing of that."}], **quoted)
    assert "quote" in kinds(other)


async def test_every_member_of_a_list_in_a_structured_result_is_evidence():
    structured = {"ships": ["Fram", "Gjoa"], "crew": [{"number": 14}, {"number": 31}]}
    items = [
        {"role": "user", "content": "Which ships?"},
        {"type": "tool_result", "toolUseId": "1", "content": [], "structuredContent": structured},
        {"role": "assistant", "content": "The crew number 31."},
    ]
    _, metadata = await detected(items, checks=["numbers"], action="report")
    assert metadata["findings"] == []


async def test_the_hint_gives_the_advice_for_what_was_found():
    answer = "Look at https://docs.sluice.dev/made/up/page."
    _, metadata = await detected(talk(answer), checks=["urls"], action="report")
    assert metadata["supported"] is False
    assert "use only addresses from the context" in metadata["rerunHint"]
    assert "state only what the context states" not in metadata["rerunHint"]
