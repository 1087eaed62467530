# ruff: noqa: RUF001 - apostrophes as they occur in texts
"""Tell things called like people by the words around them: laws and diseases, software and goods, shops and streets.

No list holds a thing's own name: "the Kellner sign", "install Ottilie", "on Brandt Street" say by themselves that
nobody is meant. Where the same context names such a person in full, the part is hidden all the same (`carrying`).
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

Place = tuple[int, int]

Kind = Literal["", "law", "software", "goods", "shop", "street"]
"""What a thing is; nothing where the words around do not say that it is one."""

_BEFORE: Final = 64
_AFTER: Final = 72
_HEAD: Final = re.compile(
    r"[^\W\d_a-z][\w.\-]*(?:['’](?![sS]\b)\w+)*(?: (?:& )?[^\W\d_a-z][\w.\-]*(?:['’](?![sS]\b)\w+)*)*"
)
"""The words of a finding that are spelled like a name: without a noun in small letters that the tagger took along."""

_TITLED: Final = re.compile(
    r"\b(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Herr|Frau|Mme|Doctor|Professor|Nurse|Judge|Officer|Detective)\.? \Z"
)


def _any(words: str) -> str:
    """Return an expression for one of the ``words``; ``_`` joins those of several."""
    return "(?:" + "|".join(word.replace("_", " ") for word in words.split()) + ")"


_LAWS: Final = "theorems? lemma laws? inequality inequalities equations? conjecture paradox syndrome"
_SCIENCE: Final = _any(
    f"""
    {_LAWS} sign reflex(?:es)? disease palsy lymphoma sarcoma fracture catheter man(?:oeuv|euv)re maneuver formula
    transform transformation distribution process model method test statistics? scale index number
    coefficients? constants? effect integrals? series sequences? matrix matrices filter smoothing kernel regression
    decomposition factori[sz]ation optimi[sz]ation algorithms? criterion criteria curve angles? operators? score
    estimators? correction noise norm space polynomials? function correlation priors? principle postulate symbol
    flask burner dish knot clamp forceps stain cycle hypothesis diagram graph sampling sampler approximation
    expansion quadrature iterations? mechanics geometry algebra entropy divergence distance temperature anemia
    """
)
_OWN_SCIENCE: Final = _any(f"{_LAWS} constant algorithm lymphoma sarcoma palsy")
_SOFTWARE: Final = _any(
    """
    servers? clusters? nodes? pods? containers? instances? daemon APIs? SDK CLI GUI UI plugins? plug-ins? modules?
    package library libraries framework compiler interpreter runtime VM kernel databases? query drivers?
    apps? console dashboards? release_notes version build binary binaries pipelines? playbooks? notebooks?
    script config configuration documentation docs repository repo extensions? add-ons? bots? chatbot broker
    queues? workers? deployments? namespaces? endpoints? webhooks? firmware syntax programmers? developers?
    programming metrics connectors? backends? frontends? templates? parser scheduler debugger linter
    installer stack client_for bindings? macros? schemas? speakers?
    """
)
_MANY: Final = _any("signs transforms processes models methods tests numbers filters curves spaces functions")
_MANY_PROGRAMS: Final = _any("packages queries versions builds scripts jobs logs")
"""Plurals that are also what people do: "Brandt tests it". They count behind an article, or before a verb."""

_FEW: Final = re.compile(
    r"\b(?i:the|an?|of|in|for|with|our|all|some|these|those|no|new|both|many|from|by|use|uses|using) \Z"
)
_DONE: Final = re.compile(
    rf" (?:(?P<law>{_MANY})|{_MANY_PROGRAMS})"
    r"(?= (?:are|were|is|have|grow|fails?|failed|times?|runs?|live|fill|takes?|show|say)\b)"
)
_SEVERAL: Final = re.compile(rf" (?:(?P<law>{_MANY})|{_MANY_PROGRAMS})\b")
_ACTS: Final = re.compile(
    r"\b(?i:did|does|do|will|can|could|should|would|may|must|let|make|makes|made|help|helped|saw|see|watch|heard|have|had)"
    r" \Z"
)
"""Words before somebody who then does something: "did Brandt sign"."""

_OWN_SOFTWARE: Final = _any(
    """
    documentation docs API CLI SDK compiler interpreter scheduler parser syntax runtime linker debugger changelog
    release_notes type_system garbage_collector standard_library package_manager plugins?
    """
)
_GOODS: Final = _any(
    """
    phones? smartphones? tablets? laptops? headsets? headphones sofas? couch armchairs? bookcases? wardrobes? mattress
    lamps? perfumes? fragrances? sneakers trainers shoes boots jeans handbags? sunglasses sedan hatchback SUV
    """
)
_SHOP: Final = _any(
    """
    stores? shops? outlets? supermarkets? pharmacy restaurants? cafés? branch(?:es)? gift_cards? vouchers? catalogue
    """
)
_PROGRAMS: Final = """
    framework library programming_language markup_language compiler interpreter database plugin broker engine
    orchestrator search_engine template_engine build_server operating_system web_server browser linter toolkit
"""
_ANNOUNCED: Final = _any(_PROGRAMS)
_SORTS: Final = _any(
    f"""
    {_PROGRAMS} generator language server scheduler package app application formatter proxy protocol queue shell IDE
    chatbot bot distribution CMS ORM DSL runtime emulator
    """
)
_LONG_VERSION: Final = r"v?\d+\.\d+(?:\.\d+|\.x)[\w.\-]*|v\d+(?:\.\d+)*[\w\-]*|version \d[\d.]*"
_BEHIND: Final = re.compile(
    rf"(?P<law>(?:[-–]\w+)?[ -]{_SCIENCE}\b|['’]s? {_OWN_SCIENCE}\b)"
    rf"|(?P<software>(?: [A-Z]\w+)? {_SOFTWARE}\b|['’]s? {_OWN_SOFTWARE}\b"
    rf"| (?:{_LONG_VERSION})(?![\w%])"
    r"| v?\d+(?:\.\d+)* (?:is out|was released|(?:or|and) (?:later|newer)|builds?|ships|supports|LTS|beta)\b"
    rf"|,? (?:(?:is|was) (?:an?|the|our|my|your)|\(an?) (?:[\w\-]+ ){{0,3}}{_SORTS}\b"
    r"| (?:crash(?:es|ed)|fail(?:s|ed)|exit(?:s|ed)) with (?:exit|status|error|code|signal|an? (?:error|exception))\b"
    r"| (?:returns|returned|throws|threw) (?:error|HTTP|status|exit|an? (?:error|exception)|[45]\d\d)\b"
    r"| (?:uses|needs|requires|takes) (?:at least |up to |about )?\d+ ?[GMK]i?B\b"
    r"| (?:ran|runs) out of (?:disk|memory)\b| supports? [^.\n]{1,24} since v?\d)"
    rf"|(?P<goods> {_GOODS}\b)"
)
_SHOP_BEHIND: Final = re.compile(
    rf"(?:['’]s)? (?:{_SHOP}|(?:opens|closes) (?:at|on)|is (?:open|closed) (?:on|until|at|all|from|for)"
    r"|(?:has|have) a sale|raised its)\b"
)
_SUFFERED: Final = re.compile(
    r"\b(?:(?:with|for|of|from|has|have|had)(?: early| advanced| suspected| severe)?|early|advanced|suspected) \Z"
)
_DISEASE: Final = re.compile(r"['’]s? (?:disease|lymphoma)\b")
_ILL: Final = re.compile(
    r"\b(?i:patients?|diagnosed|history|suffer(?:s|ing|ed)?|onset|treated|therapy|drugs) (?:with|of|from|for) \Z"
)
_ILLNESS: Final = re.compile(r"['’]s(?=[.,;)]| (?:and|or|often|have|has|may|is|in|at|since|who)\b|\Z)")
_FOUND: Final = re.compile(r"['’]s? sign (?:was |is )?(?:positive|negative|present|absent)\b")
_ANYTHING: Final = re.compile("")
_INSTALLED: Final = re.compile(
    r"\b(?:(?i:(?:un|re)?install(?:ed|ing|s)?|compil(?:e|ed|ing)|configur(?:e|ed|ing)|reboot(?:ed|ing)?|debug(?:ged|ging)?"
    r"|download(?:ed|ing)?|restart(?:ed|ing)?|docker (?:run|pull)|(?:written|implemented|coded|programmed) in"
    r"|(?:loops?|macros?|scripts?|plugins?) (?:in|for)|(?:built|build|powered) (?:with|by)|quer(?:y|ies) against"
    r"|(?:builds?|site|app|service|pipeline|tests?) runs? (?:on|with)|migrat(?:e|ed|ing) (?:from(?: \w+ to)?|to)"
    r"|(?:documentation|docs|config|configuration|backup|source code) of)|import) (?:the )?\Z"
)
_CALLED: Final = re.compile(rf"\b(?i:(?:the|a|our|web) {_ANNOUNCED}(?: called)?) \Z")
_MADE_BY: Final = re.compile(
    r" (?:\w+ed|wrote|built|made|sent|bought|chose|uses|needs|wants|likes|runs|is|was|has)\b"
)
"""What follows the one who made or uses "the framework", not the framework's own name."""

_MOVED: Final = re.compile(
    r"\b(?i:(?:up|down)grad(?:e|ed|ing)|deploy(?:ed|ing)?|migrat(?:e|ed|ing)) (?:the )?\Z"
)
_MOVED_TO: Final = re.compile(
    r" to (?:(?:version )?v?\d|(?:staging|production|prod|kubernetes|the c(?:luster|loud))\b)"
)
_RUN: Final = re.compile(r"\b(?i:runs?|running) \Z")
_INSIDE: Final = re.compile(
    r" (?:in|inside) (?:an? |the )?(?:container|docker|VM|kubernetes|cluster|background)\b"
)
_OPEN: Final = re.compile(r"\b[Oo]pen \Z")
_CLICK: Final = re.compile(r" and (?:click|select|choose|go to|type|press)\b")
_DOES: Final = re.compile(r"\b[Dd]oes \Z")
_SUPPORT: Final = re.compile(r" (?:support|run on) [A-Z]")
_DRIVEN: Final = re.compile(r"\b(?:drives?|drove) an? (?:new |old |red |white |black )?\Z")
_BOUGHT: Final = re.compile(
    r"\b(?:works?|worked|working|employed|shop(?:s|ped|ping)?|bought|buy|sold|sale|available|lunch|dinner|breakfast"
    r"|coffee|cashier|internship|discount|stopped|parked)\b(?: \w+){0,3} at \Z"
)
_TRADED: Final = re.compile(
    r"\b(?i:order(?:s|ed)?|bought|buy|sold|purchase[ds]?|refund|delivery|coupon|voucher|receipt|coffee|bread|food|pizza"
    r"|burgers?|groceries|clothes|shoes|jeans|works?|worked|working|shop(?:s|ped|ping)?|account|card)\b(?: \w+){0,3}"
    r" (?:at|from|for|with) \Z"
)
_ITS_PLACE: Final = re.compile(
    r"['’]s(?=[.,;:!?\n]|\Z| (?:and|or|in|on|for|yesterday|today|last|this|every|next|instead|has|never)\b)"
)
_PARTNER: Final = re.compile(r"\b[^\W\d_a-z][\w.]* & \Z")
_PARTNER_BEHIND: Final = re.compile(r" & [^\W\d_a-z]\w*")
_NEW: Final = re.compile(r"\b(?:a|another) new \Z")
_NEAR: Final = re.compile(r"(?:['’]s)? (?:downtown|next to|near|opened|around the corner)\b")
_MINE: Final = re.compile(r"\b[Mm]y \Z")
_LOYAL: Final = re.compile(r"(?:['’]s)? (?:card|points|loyalty)\b")
_ROAD: Final = _any(
    "Street Avenue Ave Road Rd Boulevard Blvd Crescent Terrace Mews Parkway Highway Square Drive"
)
_ROAD_TOO: Final = _any(
    "Lane Alley Park Hill Court Bridge Way Place Gardens? Close Plaza Row Walk Circle Green Station"
)
"""Words for a road that are last names, too."""

_ON_ROAD: Final = re.compile(rf"(?:.* )?{_ROAD}")
_ON_ROAD_TOO: Final = re.compile(rf".* {_ROAD_TOO}")
_ROAD_BEHIND: Final = re.compile(rf" {_ROAD}\b")
_ROAD_TOO_BEHIND: Final = re.compile(rf" {_ROAD_TOO}\b")
_THERE: Final = re.compile(r"\b(?:on|onto|into|down|along|near|off|via|across|through|in|corner of) \Z")
_BLOCKED: Final = re.compile(r" (?:is|was|will be|remains) (?:closed|blocked)\b")


def things_among(text: str, people: Iterable[Place]) -> set[Place]:
    """Return the places among supposed ``people`` of ``text`` at which a thing stands.

    Software that is named as such once is software wherever its name stands alone, unless the name is part of another.
    """
    places = sorted(set(people))
    kinds = {place: thing_at(text, *place) for place in places}
    programs = {text[slice(*place)] for place, kind in kinds.items() if kind == "software"}
    if programs:
        programs -= {
            word for start, end in places if " " in text[start:end] for word in text[start:end].split()
        }
    return {place for place in places if kinds[place] or text[slice(*place)] in programs}


def thing_at(text: str, start: int, end: int) -> Kind:
    """Return what thing the supposed person ``text[start:end]`` is by the words around it."""
    head = _HEAD.match(text, start, end)
    before = text[max(0, start - _BEFORE) : start]
    if head is None or _TITLED.search(before):
        return ""
    stop = head.end()
    if _is_street(text, head[0], stop, before):
        return "street"
    if _is_shop(text, stop, before):
        return "shop"
    return _alone(text, stop, before) if " " not in head[0] else ""


def _is_shop(text: str, stop: int, before: str) -> bool:
    """Return whether a name is a shop's, of which it may be one of two: Abel & Baker's."""
    partner = _PARTNER.search(before)
    before = before[: partner.start()] if partner else before
    behind = _PARTNER_BEHIND.match(text, stop)
    stop = behind.end() if behind else stop
    owns = text[stop : stop + 2] in ("'s", "’s")
    if _ITS_PLACE.match(text, stop) and _TRADED.search(before) if owns else _BOUGHT.search(before):
        return True
    return bool(
        _SHOP_BEHIND.match(text, stop)
        or (_LOYAL.match(text, stop) and _MINE.search(before))
        or (_NEAR.match(text, stop) and _NEW.search(before))
    )


def _alone(text: str, stop: int, before: str) -> Kind:
    """Return what the words around a lone name that ends at ``stop`` make of it."""
    if _ACTS.search(before) and not _SUPPORT.match(text, stop):
        return ""
    several = _DONE.match(text, stop) or (_SEVERAL.match(text, stop) if _FEW.search(before) else None)
    if several:
        return "law" if several["law"] else "software"
    if behind := _BEHIND.match(text, stop, stop + _AFTER):
        return "law" if behind["law"] else "goods" if behind["goods"] else "software"
    pairs: tuple[tuple[Kind, re.Pattern[str], re.Pattern[str]], ...] = (
        ("law", _FOUND, _ANYTHING),
        ("law", _DISEASE, _SUFFERED),
        ("law", _ILLNESS, _ILL),
        ("software", _MOVED_TO, _MOVED),
        ("software", _SUPPORT, _DOES),
        ("software", _INSIDE, _RUN),
        ("software", _CLICK, _OPEN),
    )
    for kind, follows, precedes in pairs:
        if follows.match(text, stop) and precedes.search(before):
            return kind
    installed = _INSTALLED.search(before) or (_CALLED.search(before) and not _MADE_BY.match(text, stop))
    return "software" if installed else "goods" if _DRIVEN.search(before) else ""


def _is_street(text: str, head: str, stop: int, before: str) -> bool:
    """Return whether a name is part of a road's."""
    if _ON_ROAD.fullmatch(head) or _ROAD_BEHIND.match(text, stop):
        return True
    behind = _ROAD_TOO_BEHIND.match(text, stop)
    if behind is None and not _ON_ROAD_TOO.fullmatch(head):
        return False
    end = behind.end() if behind else stop
    return _THERE.search(before) is not None or _BLOCKED.match(text, end) is not None
