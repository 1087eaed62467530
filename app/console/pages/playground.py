"""Try it: a text with what was found in it and why, what the model gets, and what the user gets back."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Final, NamedTuple
from zlib import crc32

from fastapi import Query
from starlette.responses import Response

from app.console.copies import gateway_calls, middleware_calls
from app.console.samples import (
    MOST_CHARACTERS,
    SAMPLE,
    sample_body,
    sample_items,
    sample_text,
    shown_items,
)
from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages
from app.core.access import Role
from app.core.contracts.engines import Candidate, Span
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs, takes
from app.services.invoke.pipelines import PipelineVersion

_HUES: Final = 8
_MOST_ROWS: Final = 200
_SENSITIVITIES: Final = ("standard", "strict")
_NAMES: Final = ("fast", "accurate")

router = new_pages()


class ShownPiece(NamedTuple):
    """A part of a text as it is shown: plain, or a finding with its handle and one of the colours."""

    text: str
    label: str | None = None
    handle: str | None = None
    score: float = 0.0
    hue: int = 0


@router.get("/console/playground")
async def show_playground(visit: VisitDep, pipeline: Annotated[str, Query(max_length=64)] = "") -> Response:
    """Show the form, with a sample in it."""
    visit.caller.require(Role.INVOKER)
    asked = {"text": SAMPLE, "sensitivity": "standard", "names": "fast", "scope": "", "pipeline": pipeline}
    return await _page(visit, asked, None)


@router.post("/console/playground")
@takes(FORM)
@needs(Role.INVOKER, action="pii.explain")
async def try_text(visit: VisitDep, form: FormDep) -> Response:
    """Show what is found in what the form has, or what a pipeline does to it; with a scope, redact it for real."""
    asked = _asked(form)
    if asked["pipeline"]:
        return await _page(visit, asked, None, await _stepped(visit, asked))
    arguments = {"aggressiveness": asked["sensitivity"], "names": asked["names"]}
    explanation = await visit.services.explaining.explain(visit.caller, asked["text"], arguments, visit.info)
    pieces = _pieces(asked["text"], explanation.spans)
    real = await _redacted(visit, asked, arguments) if asked["scope"] else None
    return await _page(
        visit,
        asked,
        {
            "pieces": pieces,
            "findings": sum(piece.label is not None for piece in pieces),
            "model": real[0] if real else "".join(_shown(piece) for piece in pieces),
            "is_real": real is not None,
            "back": real[1] if real else None,
            "candidates": [_row(asked["text"], each) for each in explanation.candidates[:_MOST_ROWS]],
            "left_out": max(0, len(explanation.candidates) - _MOST_ROWS),
            "language": explanation.language,
            "engine": explanation.engine,
            "warnings": explanation.warnings,
            "copies": _copies(visit, asked, arguments),
        },
    )


def _asked(form: Mapping[str, str]) -> dict[str, str]:
    """Return what a form asks for, with the ends of lines as the text has them elsewhere."""
    text = sample_text(form.get("text", ""))
    if form.get("sensitivity") not in _SENSITIVITIES or form.get("names") not in _NAMES:
        raise InvalidArgumentsError("The form has a choice that there is not.")
    return {
        "text": text,
        "sensitivity": form["sensitivity"],
        "names": form["names"],
        "scope": form.get("scope", "").strip(),
        "pipeline": form.get("pipeline", "").strip(),
    }


async def _stepped(visit: Visit, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return what each step of a pipeline makes of the text; nothing is stored but the event."""
    items = sample_items(asked["text"])
    answer = await visit.services.invoke.dry_run(visit.caller, asked["pipeline"], {}, items, visit.info)
    steps = [
        {
            "name": step["name"],
            "outcome": step["outcome"],
            "error": step.get("error"),
            "ms": step["durationMs"],
            "findings": step.get("metadata", {}).get("counts", {}),
            "changes": [
                (shown_items(_listed(change["before"])), shown_items(_listed(change["after"])))
                for change in step.get("changes", ())
            ],
            "added": shown_items(step["added"]) if step.get("added") else "",
        }
        for step in answer.metadata["steps"]
    ]
    copies = middleware_calls(visit.base, items, {}, asked["pipeline"])
    return {"steps": steps, "model": shown_items(answer.content), "copies": copies}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


async def _redacted(
    visit: Visit, asked: Mapping[str, str], arguments: Mapping[str, Any]
) -> tuple[str, str | None]:
    """Redact the text in its scope; return what the model gets, and what comes back for those who may restore."""
    invoke, scope = visit.services.invoke.invoke, asked["scope"]
    items = sample_items(asked["text"])
    redacted = await invoke(visit.caller, "pii_redaction", {**arguments, "scope": scope}, items, visit.info)
    text = shown_items(redacted.content)
    if not visit.may(Role.RESTORER):
        return text, None
    restored = await invoke(visit.caller, "pii_restoration", {"scope": scope}, redacted.content, visit.info)
    return text, shown_items(restored.content)


def _pieces(text: str, spans: Sequence[Span]) -> list[ShownPiece]:
    """Take a text apart at its findings; equal values of a type have one handle, as in a scope."""
    pieces, handles, done = list[ShownPiece](), dict[tuple[str, str], str](), 0
    numbers: dict[str, count[int]] = {}
    for span in spans:
        value = text[span.start : span.end]
        name = (span.label, value.casefold())
        if name not in handles:
            handles[name] = f"[{span.label}_{next(numbers.setdefault(span.label, count(1)))}]"
        pieces.append(ShownPiece(text[done : span.start]))
        hue = crc32(span.label.encode()) % _HUES
        pieces.append(ShownPiece(value, span.label, handles[name], span.score, hue))
        done = span.end
    return [piece for piece in (*pieces, ShownPiece(text[done:])) if piece.text]


def _shown(piece: ShownPiece) -> str:
    return piece.handle or piece.text


def _row(text: str, candidate: Candidate) -> dict[str, Any]:
    return {
        "text": text[candidate.span.start : candidate.span.end],
        "label": candidate.span.label,
        "score": candidate.span.score,
        "threshold": candidate.threshold,
        "recognizer": " ".join(filter(None, (candidate.recognizer, candidate.pattern))),
        "context": candidate.context,
        "won": candidate.won,
        "reason": candidate.reason,
    }


def _copies(visit: Visit, asked: Mapping[str, str], arguments: Mapping[str, Any]) -> Sequence[Any]:
    """Return the same call for programs; the body of a request to a model as one through the gateway."""
    through = gateway_calls(visit.base, sample_body(asked["text"]) or {})
    chosen = {**arguments, **({"scope": asked["scope"]} if asked["scope"] else {})}
    return through or middleware_calls(visit.base, sample_items(asked["text"]), chosen)


async def _page(
    visit: Visit,
    asked: Mapping[str, str],
    result: Mapping[str, Any] | None,
    stepped: Mapping[str, Any] | None = None,
) -> Response:
    offered = await visit.services.invoke.offered(visit.caller, visit.info)
    pipelines = [name for name, entry in offered.items() if isinstance(entry, PipelineVersion)]
    choices = {"sensitivities": _SENSITIVITIES, "all_names": _NAMES, "most": MOST_CHARACTERS}
    values = {"asked": asked, "result": result, "stepped": stepped, "pipelines": pipelines}
    return visit.page("playground.html", {**values, **choices})
