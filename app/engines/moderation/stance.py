# ruff: noqa: E501, RUF001 - a pattern is read as a whole, with an apostrophe as people type it
"""Tell who denies, answers, reports or has overcome what a window speaks of from who asserts it, by its wording.

The classifiers read which words occur; whose voice speaks them is said by a few turns of phrase. Where one of these
stands and nothing turns it round again, the score is held below what the usual level flags; the level regulated still
sees it.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

HELD: Final = 0.45
"""The highest score of a window whose stance is not to assert: between the marks of the levels regulated and enterprise."""

_FOUL: Final = (
    r"(?:vermin|rats?|lice|leeches|parasites?|animals?|monkeys|apes|dogs|pigs|snakes|maggots|garbage|trash|filth|scum"
    r"|savages|demons|cancer|disease|subhumans?|criminals|terrorists|stupid|worthless|inferior|lazy|ugly|dirty|idiots?"
    r"|losers?|liars?|whores?)"
)
_WRONG: Final = (
    r"(?:wrong|racist|bigoted|prejudice[ds]?|untrue|false|inhuman|inhumane|ignorant|sexist|antisemitic|homophobic|hateful"
    r"|disgusting|despicable|unacceptable|nonsense|a (?:lie|myth|stereotype|crime|disgrace|shame)|sad|not (?:true|okay|ok|funny))"
)
_UTTERING: Final = (
    r"(?:saying|writing|calling|claiming|wishing|comparing|posting|tweeting|shouting|joking|hating|blaming|insulting"
    r"|spreading|generali[sz]ing|judging|stereotyping)"
)
_SAID: Final = (
    r"(?:say|said|write|wrote|written|call|called|claim|claimed|mean|meant|think|thought|believe|believed|post|posted"
    r"|tweet|tweeted|threaten|threatened|plan|planned|intend|intended|wish|wished|hate|hated)"
)
_DENYING: Final = r"(?:never|not|n['’]t|no longer|neither)"
_COUNTER: Final = re.compile(
    rf"(?i)\b(?:are|is|were|was)(?: not|n['’]t)(?: \w+)? {_FOUL}\b"
    rf"|\b{_UTTERING}\b[^.!?]{{0,160}}\b(?:is|are|was|were|says more about)\b[^.!?]{{0,24}}(?:{_WRONG}|\byou\b)"
    rf"|\b(?:that|this|it|which|such \w+) (?:is|was|are) (?:\w+ )?{_WRONG}\b"
    rf"|\b(?:stop|quit|please (?:do not|don['’]t)) {_UTTERING}\b|\bstop {_UTTERING}"
    r"|\bnobody (?:deserves|is born|should|said|called|says|threatened)\b|\bno (?:one|human) (?:deserves|is born|is illegal)\b"
    r"|\b(?:one|a (?:few|single)|some) (?:\w+ ){1,3}(?:does|do) not make (?:all|every|them)"
    r"|\bnot (?:all|every|each|one of)\b|\bno reason to hate\b|\b(?:cannot|can not|can['’]t|should not) judge\b"
    r"|\bhate speech\b|\bthat is (?:just )?(?:a )?(?:stereotype|prejudice)\b|\bshame on you\b|\bhuman beings\b|\bevery right to\b"
    r"|\binstead of (?:insulting|hating|blaming|attacking)\b|\bwould you (?:say|want|like|still)\b|\byour (?:words|post|joke)s? hurts?\b"
    r"|\bjokes? about\b[^.!?]{0,60}\bnot funny\b|\bleave \w+(?: \w+)? alone\b|\breported\b|\bdisproved|\bdebunk\w+"
)
"""Answers to what another says, and refusals to follow."""

_REPORTED: Final = re.compile(
    r"(?i)\b(?:shouted|wrote|said|claimed|posted|tweeted|yelled|painted|written|sprayed|called|chanted)\b[^.!?]{0,200}"
    r"\b(?:fined|sentenced|convicted|arrested|banned|removed|on trial|court|police|condemned|apologi[sz]ed|resigned|suspended"
    r"|painted over|refute[ds]?|protest)"
    r"|\b(?:court|police|sentenced|convicted|fined|victim|museum|study|report|law)\b[^.!?]{0,160}"
    r"\b(?:shouted|wrote|said|saying|claimed|posted|written|slogans?|leaflets?|posters?)\b"
)
"""Words of others that are told together with what came of them."""

_DENIED: Final = re.compile(
    rf"(?i)\b(?:i|we|he|she|they|nobody|who)\b(?: \w+){{0,2}}?(?: {_DENYING}|n['’]t) (?:\w+ )?{_SAID}\b"
    rf"|\b(?:i|we|he|she|they) (?:\w+ )?(?:am|are|is|was|were|will|would|could|do|did|have|has)?(?: {_DENYING}|n['’]t)"
    r" (?:going to|ever|want(?:ed)? to|have (?:a|any) plan|plan(?:ning)?)\b"
    r"|\bi (?:would|will|could|shall) never\b|\bno (?:plan|intention|wish) to\b|\bdenie[sd]\b|\bdeny\b|\bswears? that\b"
    r"|\btakes? back what\b|\bwithdr[ae]w\b|\bapologi[sz]e\w*|\bi regret (?!nothing)|\bi (?:am|was) ashamed (?:that|of what|to have)\b|\b(?:it|that|i) was (?:very )?(?:wrong|unfair|a mistake)\b"
    r"|\b(?:is|was) (?:not true|untrue|false|misread|misquoted)\b|\bno truth in\b|\brumou?rs?\b|\bnot suicidal\b|\bcorrection\b|\bno longer\b"
)
"""Speakers who say that they did not, do not or will not; who take back and regret."""

_OVERCOME: Final = re.compile(
    r"(?i)\bsurviv\w+|\bused to\b|\bno longer\b|\bsober\b|\bclean\b|\brecover\w*|\brelapse\w*|\b(?:hot|help|crisis )lines?\b|\btherap\w+"
    r"|\b(?:lost|lose|losing)\b[^.!?]{0,40}\bto (?:suicide|an overdose|drugs)\b|\bprevent\w*|\bwarning signs?\b|\bsupport\b"
    r"|\b(?:days?|weeks?|months?|years?) ago\b|\bback then\b|\bdecided to live\b|\bglad to be alive\b|\bit gets (?:better|easier)\b"
    r"|\binstead when\b|\burge\b|\bpromised\b[^.!?]{0,40}\bnot\b|\bi have not\b|\bnot since\b|\bhow (?:do|can|should|could) (?:i|we|you) "
    r"(?:help|talk|tell|comfort|be there|speak|explain|taper)\b|\bwhat (?:can|do|should) (?:i|we) (?:say|do)\b|\bwh(?:ich|at|ere|om)\b[^.!?]{0,30}"
    r"\b(?:number|call|help)\b|\bold scars\b|\bdoctor about\b|\bsponsor\b|\baddict(?:ed|ion)\b"
)
"""Speakers who have come through, and those who want to help."""

_TURNED: Final = re.compile(
    r"(?i)\b(?:but|however|except|although|though|yet|anyway|still|until|unless|as long as|if you|only most|just most|most of)\b"
    r"|\bnot? (?:want(?:ed)? to )?(?:live|wake|exist|go on|be (?:here|alive)|stop|rest|hesitate|forgive|spare)\b"
    r"|n['’]t (?:want(?:ed)? to )?(?:live|wake|exist|go on|be (?:here|alive)|stop|rest|hesitate|forgive|spare)\b"
    r"|\b(?:without|not|n['’]t) (?:be(?:ing)? |get(?:ting)? )?(?:caught|notic\w+|seen|found|trac\w+|leav\w+)"
    r"|\b(?:how (?:many|much|deep)|which pills|tonight|goodbye|good-bye|wake up again|reason to live|do it again)\b"
)
"""What takes a denial back, or denies living, mercy or being seen."""

_BY_POLICY: Final[Mapping[str, tuple[re.Pattern[str], ...]]] = {
    "hate": (_COUNTER, _REPORTED, _DENIED),
    "harassment": (_COUNTER, _REPORTED, _DENIED),
    "violence": (_REPORTED, _DENIED, _COUNTER),
    "self_harm": (_DENIED, _OVERCOME),
}

VERSION: Final = hashlib.sha256(
    "\0".join(
        [
            _TURNED.pattern,
            *(f"{policy} {stance.pattern}" for policy, stances in _BY_POLICY.items() for stance in stances),
        ]
    ).encode()
).hexdigest()[:6]
"""Changes with the patterns."""


def held_policies(text: str) -> frozenset[str]:
    """Return the policies whose matter ``text``, one window, does not assert by its wording."""
    if _TURNED.search(text) is not None:
        return frozenset()
    return frozenset(
        policy for policy, stances in _BY_POLICY.items() if any(stance.search(text) for stance in stances)
    )
