"""Explain a redaction over REST: every candidate, and why it was chosen or rejected."""

from typing import Annotated, Any

from fastapi import Body as FromBody
from fastapi import Request
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, info_of, new_router, services_of
from app.api.fields import AnswerBody, Body
from app.core.access import Role
from app.core.contracts.engines import Candidate, Explanation, Span
from app.edge.limits import needs

_MOST_CHARACTERS = 200_000

router = new_router("/pii", "pii", invokes=True)


class ExplainBody(Body):
    """A text, and the arguments that `pii_redaction` would get."""

    text: str = Field(max_length=_MOST_CHARACTERS, description="The text to explain; it is not kept.")
    arguments: dict[str, Any] = Field(
        default={},
        description="Arguments that match the inputSchema of pii_redaction; the tenant's policy applies.",
    )


class SpanAnswer(AnswerBody):
    """A finding: offsets in code points, end exclusive."""

    start: int
    end: int
    type: str = Field(description="Type as in metadata, such as `person`.", examples=["person"])
    score: float = Field(description="Score from 0 to 1, after context words.")


class CandidateAnswer(SpanAnswer):
    """A candidate of one recognizer, and why it was chosen or rejected."""

    entity: str = Field(description="Name of the type in Presidio.", examples=["US_SSN"])
    recognizer: str = Field(examples=["UsSsnRecognizer"])
    pattern: str = Field(description="Name of the recognizer's pattern; empty if it has none.")
    base: float = Field(description="Score before context words.")
    context: str = Field(description="Nearby words that changed the score.")
    view: str = Field(description="How the text was read: `text`, `plain`, `base64` and so on.")
    won: bool
    reason: str = Field(description="Why it was chosen or rejected, as a sentence.")
    threshold: float | None = Field(
        description="Lowest score that counts for this type; null if the arguments exclude the type."
    )
    missing: list[str] = Field(
        description="Words that would have raised the score of a rejected candidate if one were nearby."
    )


class ExplainAnswer(AnswerBody):
    """The findings, and all candidates in the order of the text."""

    spans: list[SpanAnswer]
    candidates: list[CandidateAnswer]
    language: str = Field(description="Language assumed for the text.")
    engine: str
    warnings: list[str]


_EXAMPLE = {
    "text": "My name is John Doe and my SSN is 123-45-6789",
    "arguments": {"aggressiveness": "standard"},
}


@router.post("/explain", summary="Explain what is personal data in a text")
@needs(Role.INVOKER, action="pii.explain")
async def explain_pii(
    body: Annotated[
        ExplainBody, FromBody(openapi_examples={"text": Example(summary="One sentence", value=_EXAMPLE)})
    ],
    request: Request,
    caller: CallerDep,
) -> ExplainAnswer:
    """Scan the text as `pii_redaction` does and return why each candidate was chosen or rejected. Nothing is stored.

    JSON is read as in a context: each value by itself, behind the name of its member if that tells what it is.

    Excluded types and low scores are included, with the reason. The response has offsets, not the text.
    """
    explanation = await services_of(request).explaining.explain(
        caller, body.text, body.arguments, info_of(request)
    )
    return answer(explanation)


def answer(explanation: Explanation) -> ExplainAnswer:
    """Return an explanation as a response body."""
    return ExplainAnswer(
        spans=[SpanAnswer(**_span(span)) for span in explanation.spans],
        candidates=[_candidate(candidate) for candidate in explanation.candidates],
        language=explanation.language,
        engine=explanation.engine,
        warnings=explanation.warnings,
    )


def _span(span: Span) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "type": span.label.lower(),
        "score": round(span.score, 4),
    }


def _candidate(candidate: Candidate) -> CandidateAnswer:
    return CandidateAnswer(
        **_span(candidate.span),
        entity=candidate.entity,
        recognizer=candidate.recognizer,
        pattern=candidate.pattern,
        base=candidate.base,
        context=candidate.context,
        view=candidate.view,
        won=candidate.won,
        reason=candidate.reason,
        threshold=candidate.threshold,
        missing=list(candidate.missing),
    )
