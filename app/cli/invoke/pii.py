"""``sluice pii``: explain the redaction of a text, and measure detection on labelled texts."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from app.cli.terminal import FAILED, USAGE, fail, note, show_json, show_table

if TYPE_CHECKING:
    from app.core.contracts.engines import Candidate, DetectionOptions, Span
    from app.engines.pii.processes.pool import PoolDetector
    from app.engines.pii.recognizers.user import Definitions
    from app.engines.pii.search.labelled import LabelledText
    from app.engines.pii.search.scoring import Confusion, Scores, Tally

T = TypeVar("T")

_EXAMPLES = 3
_AROUND = 30
_LONGEST = 60

commands = typer.Typer(
    help="Explain the redaction of a text, and measure detection on your own texts. Needs no running service.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Strict = Annotated[bool, typer.Option("--strict", help="Accept every type at low scores.")]
Entities = Annotated[list[str] | None, typer.Option("--entity", help="Look only for this type. Repeatable.")]
Names = Annotated[Literal["fast", "accurate"], typer.Option(help="Which tagger looks for names.")]
Html = Annotated[
    Path | None, typer.Option("--html", help="Write an HTML page with the findings highlighted to this file.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@commands.command(
    epilog="""Examples:

\b
  sluice pii explain "My name is John Doe and my SSN is 123-45-6789"
  sluice pii explain --strict --html report.html < letter.txt"""
)
def explain(
    text: Annotated[str | None, typer.Argument(help="Text to explain [default: standard input].")] = None,
    entities: Entities = None,
    allow: Annotated[list[str] | None, typer.Option(help="Text that is never a finding. Repeatable.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="Text that is always a finding. Repeatable.")] = None,
    language: Annotated[str, typer.Option(help="Language code, or auto.")] = "auto",
    names: Names = "fast",
    html: Html = None,
    *,
    strict: Strict = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show rejected candidates: other types, low scores, overlaps.")
    ] = False,
    json: Json = False,
) -> None:
    """Show every finding in a text: its type, recognizer, score, context words and the reason it was chosen."""
    from dataclasses import asdict, replace

    from app.core.redaction.text_reading import explained

    content = sys.stdin.read() if text is None else text
    options = replace(
        _options(entities, strict=strict, names=names),
        allow_list=tuple(allow or ()),
        deny_list=tuple(deny or ()),
        language=language,
    )
    explanation = _detected(lambda pool: explained(pool, content, options))
    for warning in explanation.warnings:
        note(f"Warning: {warning}")
    if html is not None:
        _write(html, [(content, explanation.spans, explanation.candidates)])
    if json:
        show_json(asdict(explanation))
        return
    shown = [candidate for candidate in explanation.candidates if everything or candidate.won]
    show_table(
        ("START", "END", "TEXT", "TYPE", "SCORE", "RECOGNIZER", "CONTEXT", "READ AS", "WHY"),
        [_row(content, candidate) for candidate in shown],
    )


@commands.command(
    epilog="""Examples:

\b
  sluice pii evaluate labelled.jsonl
  sluice pii evaluate labelled.jsonl --strict --label TITLE=PERSON --html confusions.html

Each line is a JSON object with offsets in code points:

\b
  {"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}"""
)
def evaluate(
    file: Annotated[Path, typer.Argument(help="Labelled texts, one JSON object per line.")],
    entities: Entities = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", help="Map a label of the file to a type, as in TITLE=PERSON. Repeatable."),
    ] = None,
    names: Names = "fast",
    examples: Annotated[
        int, typer.Option(min=0, help="Number of disagreements to show of each kind.")
    ] = _EXAMPLES,
    html: Html = None,
    *,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Score detection on labelled texts: precision, recall and F1 (strict, partial, by character), with examples.

    The type ANY counts any detection of a labelled text, whatever its type. The examples quote the texts of the file.
    """
    from app.engines.pii.search.labelled import FaultyLineError, read_labelled
    from app.engines.pii.search.scoring import score

    try:
        texts, unknown = read_labelled(file.read_text("utf-8"), _label_reader(labels or []))
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.", USAGE)
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8.", USAGE)
    except FaultyLineError as error:
        fail(f"{file}, line {error.line}: {error.fault}", USAGE)
    if unknown:
        note(
            f"Ignored labels that are no types of the detector: {', '.join(unknown)}. "
            f"Map one with --label {unknown[0]}=TYPE."
        )
    options = _options(entities, strict=strict, names=names)
    wanted = None if options.entities is None else options.entities
    expected = [
        [span for span in labelled.spans if wanted is None or span.label in wanted] for labelled in texts
    ]
    findings = _detected(lambda pool: _each(pool, [labelled.text for labelled in texts], options))
    scores = score(expected, findings)
    if html is not None:
        _write(html, [(labelled.text, spans, []) for labelled, spans in zip(texts, findings, strict=True)])
    if json:
        show_json(_figures(scores))
        return
    _show(scores, texts, examples)


def _options(
    entities: Sequence[str] | None, *, strict: bool, names: Literal["fast", "accurate"]
) -> "DetectionOptions":
    from app.core.contracts.engines import DetectionOptions

    wanted = frozenset(_label(name) for name in entities) if entities else None
    return DetectionOptions(strict=strict, entities=wanted, names=names)


def _detected(work: "Callable[[PoolDetector], Awaitable[T]]") -> T:
    """Run ``work`` with a detector that uses the service's settings, and return its result."""
    import asyncio

    from app.core.errors import ServiceError
    from app.engine_wiring import pool_detector
    from app.settings import load

    async def run() -> T:
        async with pool_detector(load().detection) as pool:
            await pool.wait_ready()
            return await work(pool)

    try:
        return asyncio.run(run())
    except ServiceError as error:
        fail(str(error))


async def _each(
    pool: "PoolDetector", texts: Sequence[str], options: "DetectionOptions"
) -> "list[list[Span]]":
    """Return the findings in each of ``texts``, which are independent of each other.

    A missing tagger ends the command: figures of another tagger would mislead.
    """
    from app.core.redaction.text_reading import found_in
    from app.engines.pii.names.taggers import ACCURATE_MISSING, FAST

    findings = []
    for text in texts:
        spans, detection = await found_in(pool, text, options)
        if detection.engine == FAST and options.names != "fast":
            fail(ACCURATE_MISSING)
        findings.append(spans)
    return findings


def _label(name: str) -> str:
    definitions = _definitions()
    label = definitions.label_of(name.upper())
    if label is None:
        fail(f"Unknown type {name}. Known types: {', '.join(sorted(definitions.labels())).lower()}.", USAGE)
    return label


def _definitions() -> "Definitions":
    """Return the recognizers that the settings add, with their types."""
    from app.engine_wiring import user_definitions
    from app.settings import load

    return user_definitions(load().detection)


def _label_reader(pairs: Sequence[str]) -> "Callable[[str], str | None]":
    """Return a function that maps a label of the file to a type, by ``--label`` or by name."""
    renamed = {}
    for pair in pairs:
        name, equals, label = pair.partition("=")
        if not (name and equals and label):
            fail(f"--label must be NAME=TYPE, such as TITLE=PERSON, not {pair}.", USAGE)
        renamed[name.upper()] = _label(label)
    definitions = _definitions()
    return lambda name: renamed.get(name) or definitions.label_of(name)


def _row(text: str, candidate: "Candidate") -> tuple[object, ...]:
    pattern = f" ({candidate.pattern})" if candidate.pattern else ""
    return (
        candidate.span.start,
        candidate.span.end,
        _short(text[candidate.span.start : candidate.span.end]),
        candidate.span.label,
        f"{candidate.span.score:.2f}",
        candidate.recognizer + pattern,
        candidate.context,
        candidate.view,
        candidate.reason if candidate.won else f"lost: {candidate.reason}",
    )


def _short(text: str) -> str:
    """Return a text as one line of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _show(scores: "Scores", texts: "Sequence[LabelledText]", examples: int) -> None:
    rows = []
    for label in scores.labels():
        tallies = scores.tallies[label]
        figures = [figure for kind in ("strict", "partial", "character") for figure in _shown(tallies[kind])]
        rows.append((label.upper(), tallies["strict"].there, tallies["strict"].predicted, *figures))
    head = [f"{kind} {figure}" for kind in ("STRICT", "PARTIAL", "CHAR") for figure in ("P", "R", "F1")]
    show_table(("TYPE", "THERE", "FOUND", *head), rows)
    for kind, title in (
        ("missed", "Missed"),
        ("label", "Found as another type"),
        ("false", "False findings"),
    ):
        confusions = [confusion for confusion in scores.confusions if confusion.kind == kind]
        if confusions and examples:
            print(f"\n{title}: {len(confusions)}")
            for line in _lines(confusions, texts, examples):
                print(f"  {line}")


def _shown(tally: "Tally") -> tuple[str, str, str]:
    """Return precision, recall and F1; a hyphen if there is nothing to count."""
    return (
        f"{tally.precision:.3f}" if tally.predicted else "-",
        f"{tally.recall:.3f}" if tally.there else "-",
        f"{tally.f1:.3f}" if tally.predicted and tally.there else "-",
    )


def _lines(
    confusions: "Sequence[Confusion]", texts: "Sequence[LabelledText]", examples: int
) -> Iterator[str]:
    """Yield up to ``examples`` disagreements for each pair of types, with the text around them."""
    seen: dict[tuple[str, str], int] = {}
    for confusion in confusions:
        span = confusion.expected or confusion.predicted
        if span is None:
            continue
        pair = (
            confusion.expected.label if confusion.expected else "",
            confusion.predicted.label if confusion.predicted else "",
        )
        seen[pair] = seen.get(pair, 0) + 1
        if seen[pair] > examples:
            continue
        labelled = texts[confusion.text]
        before = " ".join(labelled.text[max(0, span.start - _AROUND) : span.start].split())
        after = " ".join(labelled.text[span.end : span.end + _AROUND].split())
        types = " -> ".join(filter(None, pair))
        yield f"line {labelled.line}, {types}: {before} [{_short(labelled.text[span.start : span.end])}] {after}"


def _figures(scores: "Scores") -> dict[str, object]:
    return {
        "types": {
            label.upper(): {
                kind: {
                    "precision": round(tally.precision, 4),
                    "recall": round(tally.recall, 4),
                    "f1": round(tally.f1, 4),
                    "found": tally.predicted,
                    "there": tally.there,
                }
                for kind, tally in scores.tallies[label].items()
            }
            for label in scores.labels()
        },
        "confusions": [
            {"expected": expected or None, "found": detected or None, "count": count}
            for (expected, detected), count in scores.pairs.most_common()
        ],
    }


def _write(path: Path, texts: "Sequence[tuple[str, Sequence[Span], Sequence[Candidate]]]") -> None:
    from app.cli.invoke.pii_report import page

    try:
        path.write_text(page(texts), "utf-8", "backslashreplace")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}.", FAILED)
    note(f"Wrote {path}; it contains the texts unredacted.")
