"""Why a text is redacted as it is: every candidate, and what became of it."""

from typing import Annotated, Any

from fastapi import Body as FromBody
from fastapi import Request
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, info_of, new_router, services_of
from app.api.fields import AnswerBody, Body
from app.core.contracts.engines import Candidate, Explanation, Span

_MOST_CHARACTERS = 200_000

router = new_router("/pii", "pii", invokes=True)


class ExplainBody(Body):
    """A text, and the arguments that `pii_redaction` would get."""

    text: str = Field(max_length=_MOST_CHARACTERS, description="The text to explain; it is not kept.")
    arguments: dict[str, Any] = Field(
        default={}, description="As the inputSchema of pii_redaction says; the tenant's policy holds."
    )


class SpanAnswer(AnswerBody):
    """A finding: offsets in code points, end exclusive."""

    start: int
    end: int
    type: str = Field(description="As in metadata, such as `person`.", examples=["person"])
    score: float = Field(description="0 to 1, context words included.")


class CandidateAnswer(SpanAnswer):
    """What one recognizer found, and what became of it."""

    entity: str = Field(description="The name of the type in Presidio.", examples=["US_SSN"])
    recognizer: str = Field(examples=["UsSsnRecognizer"])
    pattern: str = Field(description="The recognizer's pattern, by name; empty where it has none.")
    base: float = Field(description="The score before context words.")
    context: str = Field(description="The words nearby that changed the score.")
    view: str = Field(description="How the text was read: `text`, `plain`, `base64` and so on.")
    won: bool
    reason: str = Field(description="Why it won or lost, for people.")
    threshold: float | None = Field(
        description="The score from which on this type counts; null where the arguments leave the type out."
    )
    missing: list[str] = Field(
        description="Words of which one nearby would have raised the score of a loser."
    )


class ExplainAnswer(AnswerBody):
    """The findings, and every candidate for one in the order of the text."""

    spans: list[SpanAnswer]
    candidates: list[CandidateAnswer]
    language: str = Field(description="The language that the text was taken for.")
    engine: str
    warnings: list[str]


_EXAMPLE = {
    "text": "My name is John Doe and my SSN is 123-45-6789",
    "arguments": {"aggressiveness": "standard"},
}


@router.post("/explain", summary="Explain what is personal data in a text")
async def explain(
    body: Annotated[
        ExplainBody, FromBody(openapi_examples={"text": Example(summary="One sentence", value=_EXAMPLE)})
    ],
    request: Request,
    caller: CallerDep,
) -> ExplainAnswer:
    """Scan the text as `pii_redaction` does, and say of every candidate why it won or lost; nothing is stored.

    What the arguments leave out and what scores too low is shown too, with the reason. The answer holds offsets,
    not the text.
    """
    found = await services_of(request).explaining.explain(caller, body.text, body.arguments, info_of(request))
    return answer(found)


def answer(found: Explanation) -> ExplainAnswer:
    """Return an explanation in the form of the wire."""
    return ExplainAnswer(
        spans=[SpanAnswer(**_span(span)) for span in found.spans],
        candidates=[_candidate(one) for one in found.candidates],
        language=found.language,
        engine=found.engine,
        warnings=found.warnings,
    )


def _span(span: Span) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "type": span.label.lower(),
        "score": round(span.score, 4),
    }


def _candidate(one: Candidate) -> CandidateAnswer:
    return CandidateAnswer(
        **_span(one.span),
        entity=one.entity,
        recognizer=one.recognizer,
        pattern=one.pattern,
        base=one.base,
        context=one.context,
        view=one.view,
        won=one.won,
        reason=one.reason,
        threshold=one.threshold,
        missing=list(one.missing),
    )
