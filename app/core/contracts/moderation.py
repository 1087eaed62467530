"""Categories of moderated texts by policy and intent, with their warnings and severities."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["low", "medium", "high"]
Level = Literal["consumer", "enterprise", "regulated"]

POLICIES = ("violence", "harassment", "hate", "sexual", "self_harm", "illicit")

THRESHOLDS: Mapping[Level, float] = {"regulated": 0.35, "enterprise": 0.5, "consumer": 0.65}
"""The lowest score at which a text is flagged, by level."""

PLAIN = 0.85
"""The lowest score at which a violation is so clear that refusing the text is defensible."""

SEVERITIES: tuple[Severity, ...] = ("low", "medium", "high")

SUPPORT = (
    "answer with care, do not judge, and name help such as the local emergency number "
    "or a crisis line (988 in the US and Canada, 116 123 in the UK and Ireland)"
)


@dataclass(frozen=True, slots=True)
class Category:
    """A flag, the warning for the model, and the highest possible severity."""

    flag: str
    warning: str
    ceiling: Severity = "high"


_HARM_SEEKING = "potential_harm_seeking"
_HARM_WARNING = "This query may seek harmful advice"

SEEKING: Mapping[str, Category] = {
    "violence": Category(_HARM_SEEKING, _HARM_WARNING),
    "harassment": Category(_HARM_SEEKING, _HARM_WARNING, ceiling="medium"),
    "hate": Category(
        "hateful_content_seeking", "This query may ask for content that demeans a group of people"
    ),
    "sexual": Category("sexual_content_seeking", "This query may ask for sexually explicit content"),
    "self_harm": Category(
        "self_harm_method_seeking", f"This query may seek ways to harm oneself; give none, {SUPPORT}"
    ),
    "illicit": Category("illicit_advice_seeking", "This query may seek advice on breaking the law"),
}
"""Categories by policy for texts that request advice or another text."""

EXPRESSING: Mapping[str, Category] = {
    "violence": Category("violent_content", "This text may threaten, plan or glorify violence"),
    "harassment": Category("harassing_content", "This text may insult, threaten or expose a person"),
    "hate": Category("hateful_content", "This text may demean people for the group they belong to"),
    "sexual": Category("sexual_content", "This text may be sexually explicit"),
    "self_harm": Category("self_harm_risk", f"The writer may be at risk of self-harm; {SUPPORT}"),
    "illicit": Category("illicit_content", "This text may plan or describe a crime"),
}
"""Categories by policy for texts that state, threaten or narrate something."""

_REQUEST = re.compile(
    r"(?:^|[.!?:;,\n]\s*|\b(?:and|but|so|then|please|hi|hello|hey|ok|okay)\s+)"
    r"(?:how (?:can|do|does|did|could|would|should|might|to|hard|much|many|long)\b"
    r"|(?:what|which|where|when|who|whom)\b(?=[^.!\n]*\?)"
    r"|what(?:'s| is| are)? the (?:best|easiest|fastest|quickest|safest|cheapest|simplest|most)\b"
    r"|what (?:should|can|do|could) i\b"
    r"|(?:some )?(?:ways|tips|ideas|methods|steps|instructions|tricks|advice)\b"
    r"|(?:give|show|teach|tell|send|sell|find|get|help|explain|describe|list|name|suggest|recommend|provide|"
    r"write|create|draft|develop|make|design|plan|compose|generate|produce|outline|script|invent|rewrite|continue|"
    r"persuade|convince|guide|instruct|prepare|summari[sz]e|translate|post)\b"
    r"|(?:can|could|would|will) (?:you|i|one|we|someone|anyone)\b"
    r"|(?:is|are) there (?:a|an|any)\b"
    r"|i(?:'m| am)? (?:need|want|wish|would like|'d like|looking|trying)\b"
    r"[^.!?\n]*\b(?:advice|know|learn|instructions|help|how|way|ways|guide|tips|plan|recipe)\b)",
    re.IGNORECASE,
)
_FOREIGN_REQUEST = re.compile(
    r"(?:^|[.!?:;,\n]\s*)¿?(?:(?:wie|womit|wo|welche[rsn]?|comment|où|quel(?:le)?s?|cómo|dónde|qué|como|onde|dove|hoe|waar"
    r"|waarmee|welke?)\b(?=[^.!\n]*\?)|(?:wie|comment|cómo|como|hoe) (?:kann|puis|peut|puedo|posso|se|kan|moet)\b"
    r"|come (?:posso|potrei|si|faccio|fare)\b|(?:sag mir|erkläre?|schreib|zeig mir|explique|dis-moi|écris|dime"
    r"|explícame|escribe|dimmi|spiegami|scrivi|diz-me|me explica|escreve|vertel me|leg uit|schrijf)\b)"
    r"|怎么|怎样|如何|教我|告诉我|帮我|给我写",
    re.IGNORECASE,
)
"""The same in other languages, at the beginning of a sentence."""

_FIRST_PERSON_REPORT = re.compile(r"\btell (?:him|her|them|everyone|my|your)\b", re.IGNORECASE)


def category_of(policy: str, text: str) -> Category:
    """Return the category of a text that violates ``policy``, which depends on whether it is a request."""
    is_request = (
        _REQUEST.search(text) is not None and _FIRST_PERSON_REPORT.match(text) is None
    ) or _FOREIGN_REQUEST.search(text) is not None
    return (SEEKING if is_request else EXPRESSING)[policy]


def severity_of(score: float, category: Category) -> Severity:
    """Return the severity: low if only the strictest level flags the text, up to high if the violation is clear."""
    if score < THRESHOLDS["enterprise"]:
        return "low"
    return category.ceiling if score >= PLAIN else "medium"
