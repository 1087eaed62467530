"""Render a self-contained HTML page, without scripts, that highlights findings in texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from zlib import crc32

from app.core.contracts.engines import Candidate, Span

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; border: 1px solid #8884; border-radius: .4rem;
  padding: .8rem 1rem; margin: 0; }
mark { border-radius: .25rem; padding: .05rem .2rem; color: inherit;
  background: hsl(var(--h) 85% 85%); box-shadow: inset 0 -2px hsl(var(--h) 60% 45%); }
mark small { font-size: .68em; font-weight: 600; margin-left: .3em; letter-spacing: .03em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; margin-top: .6rem; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } tr.lost { opacity: .6; }
@media (prefers-color-scheme: dark) { mark { background: hsl(var(--h) 45% 28%); } }
@media print { mark { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
"""


def page(texts: Sequence[tuple[str, Sequence[Span], Sequence[Candidate]]]) -> str:
    """Return one HTML document for texts with their findings and, where known, all candidates."""
    parts = list(_parts(texts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Personal data found</title>\n"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def _parts(texts: Sequence[tuple[str, Sequence[Span], Sequence[Candidate]]]) -> Iterator[str]:
    counts = Counter(span.label for _, spans, _ in texts for span in spans)
    total = sum(counts.values())
    yield f"<h1>Personal data: {total} finding{'' if total == 1 else 's'}</h1>"
    legend = " ".join(_marked(f"{label} {count}", label, "") for label, count in sorted(counts.items()))
    yield f"<p>{legend}</p>"
    for number, (text, spans, candidates) in enumerate(texts, 1):
        if len(texts) > 1:
            yield f"<h2>Text {number}</h2>"
        yield f"<pre>{''.join(_pieces(text, spans))}</pre>"
        if candidates:
            yield _table(text, candidates)


def _pieces(text: str, spans: Iterable[Span]) -> Iterator[str]:
    done = 0
    for span in spans:
        yield escape(text[done : span.start])
        title = f"{span.label}, score {span.score:.2f}"
        yield _marked(text[span.start : span.end], span.label, title, named=True)
        done = span.end
    yield escape(text[done:])


def _marked(text: str, label: str, title: str, *, named: bool = False) -> str:
    hue = crc32(label.encode()) % 360
    name = f"<small>{escape(label)}</small>" if named else ""
    return f'<mark style="--h:{hue}" title="{escape(title)}">{escape(text)}{name}</mark>'


def _table(text: str, candidates: Iterable[Candidate]) -> str:
    head = "".join(
        f"<th>{name}</th>"
        for name in ("Text", "Type", "Score", "Before context", "Recognizer", "Context", "Read as", "Why")
    )
    rows = "\n".join(_row(text, candidate) for candidate in candidates)
    return f'<div class="scroll"><table>\n<tr>{head}</tr>\n{rows}\n</table></div>'


def _row(text: str, candidate: Candidate) -> str:
    cells = (
        f"<td>{escape(text[candidate.span.start : candidate.span.end])}</td>",
        f"<td>{escape(candidate.span.label)}</td>",
        f'<td class="n">{candidate.span.score:.2f}</td>',
        f'<td class="n">{candidate.base:.2f}</td>',
        f"<td>{escape(' '.join(filter(None, (candidate.recognizer, candidate.pattern))))}</td>",
        f"<td>{escape(candidate.context)}</td>",
        f"<td>{escape(candidate.view)}</td>",
        f"<td>{'' if candidate.won else 'lost: '}{escape(candidate.reason)}</td>",
    )
    opening = "<tr>" if candidate.won else '<tr class="lost">'
    return f"{opening}{''.join(cells)}</tr>"
