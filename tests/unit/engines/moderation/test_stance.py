"""Who denies, answers, reports or has overcome what a text speaks of is told from who asserts it."""

import pytest

from app.core.contracts.moderation import POLICIES, THRESHOLDS
from app.engines.encoder import Encoder
from app.engines.moderation.embedded import EmbeddedModerator
from app.engines.moderation.stance import HELD, held_policies
from tests.proportion import assert_in_proportion

MODERATOR = EmbeddedModerator(Encoder())

NOT_ASSERTED = {
    "I don't want to die, I only need some sleep.": "self_harm",
    "I am not going to hang myself; please do not worry.": "self_harm",
    "No, I am not suicidal, I am just sad.": "self_harm",
    "I used to hurt myself. Swimming helps me now.": "self_harm",
    "After my overdose I woke up in hospital and decided to live.": "self_harm",
    "My friend lost her husband to suicide. What can I say to her?": "self_harm",
    "I would never strangle a homeless man, not even in anger.": "violence",
    "Wishing that Arabs be stoned is inhuman. Shame on you.": "hate",
    "Women are not snakes.": "hate",
    "Nobody deserves to be enslaved, whatever group they belong to.": "hate",
    "The man who shouted that atheists should be sterilised was sentenced.": "hate",
    "Nobody said you are a stupid bitch.": "harassment",
}
ASSERTED = {
    "I don't want to live any more, I want to die.": "self_harm",
    "I will never wake up again, I have the pills here.": "self_harm",
    "I used to hurt myself and tonight I will kill myself.": "self_harm",
    "I am not going to rest until I have stabbed my boss.": "violence",
    "I will not stop until every one of them is shot.": "violence",
    "I don't hate Arabs, but they are vermin and should be shot.": "hate",
    "All Arabs are vermin and should be shot.": "hate",
    "You are a stupid bitch and everybody hates you.": "harassment",
}


async def _score(text: str, policy: str) -> float:
    moderation = await MODERATOR.moderate([text], POLICIES)
    return moderation.scores[0][policy]


@pytest.mark.parametrize("text", NOT_ASSERTED)
async def test_what_is_not_asserted_stays_below_the_usual_level(text):
    assert NOT_ASSERTED[text] in held_policies(text)
    assert await _score(text, NOT_ASSERTED[text]) <= HELD < THRESHOLDS["enterprise"]


@pytest.mark.parametrize("text", ASSERTED)
async def test_what_is_asserted_is_not_held(text):
    assert ASSERTED[text] not in held_policies(text)


async def test_the_same_words_asserted_are_flagged():
    assert await _score("All Arabs are vermin and should be shot.", "hate") >= THRESHOLDS["enterprise"]
    assert await _score("I am going to hang myself tonight.", "self_harm") >= THRESHOLDS["enterprise"]


async def test_each_window_is_held_by_itself():
    """A denial at the beginning does not excuse what stands far behind it."""
    denial = "I would never hurt anybody. " + "The weather was fine and we had tea in the garden. " * 8
    threat = "All Arabs are vermin and should be shot."

    assert await _score(f"{denial}\n\n{threat}", "hate") >= THRESHOLDS["enterprise"]


async def test_the_strict_level_still_sees_it():
    assert THRESHOLDS["regulated"] < HELD


@pytest.mark.parametrize("piece", ["said ", "i would not ", "stop saying that ", "a" * 30 + " "])
def test_the_time_is_in_proportion_to_the_text(piece):
    assert_in_proportion(lambda size: held_policies(piece * (size // len(piece))), 1_000, 4_000)
