"""All readings of a text, from the plain one to what was encoded several times over."""

from dataclasses import dataclass
from typing import Final

from app.engines.views.encoded import encoded_runs
from app.engines.views.escaped import escapes
from app.engines.views.hidden import hidden_views
from app.engines.views.mapping import Change, View, apart, respelled
from app.engines.views.plain import plain_view

LEVELS: Final = 3
"""How often one encoding within another is undone; what is wrapped once more has no honest reason to be."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The views of a text, and where something lies in it that was encoded once too often to be read."""

    views: list[View]
    sealed: list[tuple[int, int]]


def readings(text: str) -> Readings:
    """Return every other way to read ``text``; together they are at most a fixed multiple of it, whatever it holds."""
    views: list[View] = []
    below: View | None = None
    if not text.isascii():
        for hidden in hidden_views(text):
            views += _with_plain(hidden)
        below = plain_view(text)
        views += [] if below is None else [below]
    for _ in range(LEVELS):
        seen = text if below is None else below.text
        changes = _decodings(seen)
        if not changes:
            return Readings(views, [])
        new = _with_plain(respelled(seen, changes, below))
        views += new
        below = new[-1]
    sealed = [] if below is None else [below.original_span(*one[:2]) for one in _decodings(below.text)]
    return Readings(views, sealed)


def _with_plain(view: View) -> list[View]:
    plain = plain_view(view.text, view)
    return [view] if plain is None else [view, plain]


def _decodings(text: str) -> list[Change]:
    """Return everything that is encoded in ``text``, one level deep."""
    return apart([*escapes(text), *encoded_runs(text)])
