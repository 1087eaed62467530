"""Pairs of words with opposite meanings, by stem."""

from typing import Final

from app.engines.grounding.stemming import stem

_PAIRS: Final = (
    "above below; accept reject; active inactive; add remove; after before; agree disagree; allow forbid; "
    "allow prevent; always never; approve reject; ascend descend; attack defend; begin end; best worst; "
    "better worse; big small; bottom top; buy sell; cheap expensive; cold hot; cold warm; common rare; "
    "connect disconnect; correct incorrect; correct wrong; create destroy; dead alive; decline grow; "
    "decline rise; decrease increase; deep shallow; deny confirm; deny grant; difficult easy; disable "
    "enable; down up; drop rise; early late; east west; eastern western; empty full; enter leave; even "
    "odd; exclude include; export import; external internal; fail pass; fail succeed; failure success; "
    "fall rise; false true; fast slow; female male; few many; fewer more; first last; former latter; gain "
    "lose; gain loss; good bad; guilty innocent; happy sad; hard soft; heavy light; high low; higher "
    "lower; highest lowest; inside outside; large small; larger smaller; largest smallest; least most; "
    "left right; legal illegal; less more; long short; longer shorter; longest shortest; lose win; lost "
    "won; major minor; majority minority; maximum minimum; more less; mandatory optional; near far; "
    "negative positive; new old; newest oldest; north south; northern southern; older younger; oldest "
    "youngest; on off; open close; open shut; over under; parent child; permit forbid; poor rich; "
    "possible impossible; private public; profit loss; push pull; raise lower; read write; required "
    "optional; safe dangerous; safe unsafe; same different; start end; start finish; start stop; strong "
    "weak; stronger weaker; support oppose; taller shorter; tighten loosen; up down; upper lower; valid "
    "invalid; victory defeat; wet dry; wide narrow; husband wife; brother sister; mother father; son "
    "daughter; king queen; man woman; boy girl; day night; morning evening; summer winter; spring autumn; "
    "monday tuesday; ancient modern; permanent temporary; domestic foreign; urban rural; front back; ally "
    "enemy; deposit withdraw; accelerate decelerate; expand shrink; expand contract; hire fire; love "
    "hate; sunrise sunset; urge discourage; encourage discourage; encrypt decrypt; encode decode; upload "
    "download; install uninstall; lock unlock; visible hidden"
)


def _by_stem() -> dict[str, frozenset[str]]:
    opposites: dict[str, set[str]] = {}
    for pair in _PAIRS.split(";"):
        word, other = (stem(word) for word in pair.split())
        opposites.setdefault(word, set()).add(other)
        opposites.setdefault(other, set()).add(word)
    return {word: frozenset(others) for word, others in opposites.items()}


OPPOSITES: Final = _by_stem()
"""For each stem, the stems of words with the opposite meaning."""
