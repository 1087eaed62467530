"""Try it: a text with what was found in it and why, what the model gets, and what the user gets back."""

import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple
from zlib import crc32

from starlette.responses import Response

from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages
from app.core.access import Role
from app.core.contracts.engines import Candidate, Span
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs, takes

MOST_CHARACTERS: Final = 20_000
_HUES: Final = 8
_MOST_ROWS: Final = 200
_SAMPLE: Final = (
    "Hello, I am Jane Smith. Please call me on +44 20 7946 0958 or write to jane.smith@example.com. "
    "My card 4111 1111 1111 1111 was charged twice, and my SSN is 123-45-6789."
)
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
async def show_playground(visit: VisitDep) -> Response:
    """Show the form, with a sample in it."""
    visit.caller.require(Role.INVOKER)
    return _page(visit, {"text": _SAMPLE, "sensitivity": "standard", "names": "fast", "scope": ""}, None)


@router.post("/console/playground")
@takes(FORM)
@needs(Role.INVOKER, action="pii.explain")
async def try_text(visit: VisitDep, form: FormDep) -> Response:
    """Show what is found in the text of the form; with a scope, redact it for real and keep the values there."""
    asked = _asked(form)
    arguments = {"aggressiveness": asked["sensitivity"], "names": asked["names"]}
    explanation = await visit.services.explaining.explain(visit.caller, asked["text"], arguments, visit.info)
    pieces = _pieces(asked["text"], explanation.spans)
    real = await _redacted(visit, asked, arguments) if asked["scope"] else None
    return _page(
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
    text = form.get("text", "").replace("\r\n", "\n")
    if not text.strip() or len(text) > MOST_CHARACTERS:
        raise InvalidArgumentsError(f"Give a text of 1 to {MOST_CHARACTERS} characters.")
    if form.get("sensitivity") not in _SENSITIVITIES or form.get("names") not in _NAMES:
        raise InvalidArgumentsError("The form has a choice that there is not.")
    return {
        "text": text,
        "sensitivity": form["sensitivity"],
        "names": form["names"],
        "scope": form.get("scope", "").strip(),
    }


async def _redacted(
    visit: Visit, asked: Mapping[str, str], arguments: Mapping[str, Any]
) -> tuple[str, str | None]:
    """Redact the text in its scope; return what the model gets, and what comes back for those who may restore."""
    invoke, scope = visit.services.invoke.invoke, asked["scope"]
    items = [{"type": "text", "text": asked["text"]}]
    redacted = await invoke(visit.caller, "pii_redaction", {**arguments, "scope": scope}, items, visit.info)
    text = str(redacted.content[0]["text"])
    if not visit.may(Role.RESTORER):
        return text, None
    restored = await invoke(
        visit.caller, "pii_restoration", {"scope": scope}, [{"type": "text", "text": text}], visit.info
    )
    return text, str(restored.content[0]["text"])


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


def _copies(visit: Visit, asked: Mapping[str, str], arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the same call for programs; none has the key, which stays with its holder."""
    base = visit.base
    context = [{"type": "text", "text": asked["text"]}]
    chosen = {**arguments, **({"scope": asked["scope"]} if asked["scope"] else {})}
    body = json.dumps({"arguments": chosen, "context": context}, ensure_ascii=False)
    quoted = body.replace("'", "'\\''")
    items, options = json.dumps(context, ensure_ascii=False), json.dumps(chosen, ensure_ascii=False)
    curl = (
        f"curl -s {base}/api/v1/middleware/pii_redaction/invoke \\\n"
        '  -H "Authorization: Bearer $SLUICE_API_KEY" -H "Content-Type: application/json" \\\n'
        f"  -d '{quoted}'"
    )
    python = (
        "import os\nfrom sluice_client import Sluice\n\n"
        f'with Sluice("{base}", os.environ["SLUICE_API_KEY"]) as sluice:\n'
        f'    print(sluice.invoke("pii_redaction", {items}, {options}).content)'
    )
    typescript = (
        f'const answer = await fetch("{base}/api/v1/middleware/pii_redaction/invoke", {{\n'
        '  method: "POST",\n'
        "  headers: { authorization: `Bearer ${process.env.SLUICE_API_KEY}`, "
        '"content-type": "application/json" },\n'
        f"  body: JSON.stringify({{ arguments: {options}, context: {items} }}),\n}});\n"
        "console.log((await answer.json()).content);"
    )
    return [("curl", curl), ("Python", python), ("TypeScript", typescript)]


def _page(visit: Visit, asked: Mapping[str, str], result: Mapping[str, Any] | None) -> Response:
    choices = {"sensitivities": _SENSITIVITIES, "all_names": _NAMES, "most": MOST_CHARACTERS}
    return visit.page("playground.html", {"asked": asked, "result": result, **choices})
