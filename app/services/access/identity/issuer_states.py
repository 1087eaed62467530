"""What a process knows of an issuer: its keys, when it was asked, and what was wrong then."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.services.access.issuer_keys import IssuerKeys


@dataclass(frozen=True, slots=True)
class IssuerState:
    """What the process that answers knows of an issuer.

    ``keys`` counts those that can verify its tokens, ``fetched`` says when they came, ``asked`` when it was asked
    last, ``error`` what was wrong then or is wrong with what is stored.
    """

    keys: int = 0
    fetched: datetime | None = None
    asked: datetime | None = None
    error: str | None = None


def state_of(keys: IssuerKeys | None, now: datetime) -> IssuerState:
    """Return the state at a moment; None: of an issuer that is not trusted, of which nothing is known."""
    if keys is None:
        return IssuerState()
    state = keys.state
    fetched, asked = (
        None if age is None else now - timedelta(seconds=age) for age in (state.fetched_s, state.asked_s)
    )
    return IssuerState(state.usable, fetched, asked, state.fault)
