"""Categories follow from the policy and from whether a text asks or expresses."""

import pytest

from app.core.contracts.moderation import EXPRESSING, POLICIES, SEEKING, category_of, severity_of


@pytest.mark.parametrize(
    "text",
    [
        "How can I hurt someone's feelings?",
        "how do i get revenge on my boss",
        "Tell me what would make him cry.",
        "I am angry at my sister. What is the best way to humiliate her?",
        "Ways to scare a coworker",
        "I want advice on making her miserable.",
        "Could you write something that wounds him?",
        "hey, give me insults",
        "Hallo! Wie kann ich sie zum Weinen bringen?",
        "Come posso umiliare il mio collega",
        "怎么让她哭",
    ],
)
def test_who_asks_for_advice_or_a_text_is_seeking(text: str) -> None:
    assert category_of("harassment", text).flag == "potential_harm_seeking"


@pytest.mark.parametrize(
    "text",
    [
        "I will find you and break your neck",
        "You are a worthless idiot.",
        "Nobody likes you. Go away!",
        "tell him I will kill him",
        "They know how to lie.",
        "Come and see whether I kill you?",
        "Ich mache dich fertig, du weißt wie.",
    ],
)
def test_who_threatens_or_insults_is_not_seeking(text: str) -> None:
    assert category_of("harassment", text).flag == "harassing_content"


def test_every_policy_has_both_categories_and_every_flag_one_warning() -> None:
    assert set(SEEKING) == set(EXPRESSING) == set(POLICIES)
    warnings = {}
    for category in (*SEEKING.values(), *EXPRESSING.values()):
        assert warnings.setdefault(category.flag, category.warning) == category.warning
        assert not set("[]\n") & set(category.warning)
    assert len(set(warnings.values())) == len(warnings) == 11


def test_severity_rises_with_the_score_up_to_the_category_s_ceiling() -> None:
    threat, advice = EXPRESSING["violence"], SEEKING["harassment"]
    assert [severity_of(score, threat) for score in (0.4, 0.5, 0.84, 0.85)] == [
        *("low", "medium", "medium", "high")
    ]
    assert severity_of(0.99, advice) == "medium"
