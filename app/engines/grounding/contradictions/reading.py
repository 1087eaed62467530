"""Read a sentence for comparison: its words, which of them matter, and what negates or limits them."""

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from app.core.contracts.grounding import SourcePlace
from app.engines.grounding.numbers import KnownQuantities
from app.engines.grounding.opposites import OPPOSITES
from app.engines.grounding.quantities import Quantity, quantities_in
from app.engines.grounding.stemming import stem
from app.engines.grounding.words import STOP_WORDS

_WORD: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|[,;:]")
_IRREGULAR: Final = (
    "rose risen rise; fell fallen fall; sold sell; bought buy; lost lose; won win; began begun begin; grew "
    "grown grow; sank sunk sink; gave given give; took taken take; went gone go; came come; left leave; kept "
    "keep; held hold; met meet; paid pay; said say; told tell; knew known know; thought think; found find; "
    "felt feel; built build; sent send; spent spend; led lead; fed feed; hid hidden hide; broke broken break; "
    "chose chosen choose; drove driven drive; wrote written write; spoke spoken speak; stole stolen steal; "
    "wore worn wear; froze frozen freeze; flew flown fly; drew drawn draw; threw thrown throw; shrank shrunk "
    "shrink; beat beaten beat; fought fight; taught teach; caught catch; brought bring; sought seek; lent "
    "lend; became become; ran run; saw seen see; made make; slept sleep; stood stand; understood understand; "
    "better good; worse bad; best good; worst bad; higher highest high; lower lowest low; larger largest "
    "large; smaller smallest small; longer longest long; shorter shortest short; older oldest old; newer "
    "newest new; younger youngest young; later latest late; earlier earliest early; faster fastest fast; "
    "slower slowest slow; stronger strongest strong; weaker weakest weak; cheaper cheapest cheap; northern "
    "north; southern south; eastern east; western west; deeper deepest deep; wider widest wide"
)
_PAIRS: Final = (
    "beat lose; defeat lose; surpass trail; everybody nobody; everyone nobody; lend borrow; with without; "
    "confirm deny; retain refund; postpone advance; approve veto; widen "
    "narrow; strengthen weaken; improve worsen; soar plunge; climb drop; climb fall; grow shrink; gain shed; "
    "hike cut; increase reduce; raise cut; rise drop; rise decline; rise sink; boost cut; expand cut; recruit "
    "dismiss; hire dismiss; appoint dismiss; acquit convict; innocent convicted; release detain; free "
    "imprisoned; ban allow; ban permit; banned legal; admit deny; admit exclude; unite divide; join leave; "
    "arrive depart; depart arrive; attract repel; praise criticise; praise criticize; welcome condemn; win "
    "lose; survive die; alive killed; born died; cure cause; heal injure; melt freeze; save waste; protect "
    "endanger; tighten ease; tighten relax; evening morning; earlier later; fewer more; upstream downstream; "
    "indoor outdoor; indoors outdoors; single married; full empty; freshwater saltwater; mild severe; scarce "
    "abundant; voluntary mandatory; voluntary compulsory; optional compulsory; reversible permanent; shut "
    "open; closed open; most few; majority minority; back oppose; support reject; postpone hold; delay hold; "
    "expand close; build demolish; construct demolish; construct destroy; build tear; extend shorten; uphold "
    "overturn; confirm overturn; rescue abandon; introduce abolish; introduce scrap; found dissolve; found close; "
    "launch end; accept decline; accept refuse; approve decline; repair break; repair damage; fix break; damage "
    "repair; keep discard; keep sell; keep lose; hire lay; lower double; cut double; reduce double; lower raise; "
    "halve double; reduce expand; cancel confirm; add cancel; rise stagnate; grow stagnate; "
    "fall stagnate; praise blame; thank blame; praise ignore; applaud boo; trust suspect; trust distrust; love "
    "despise; like dislike; respect ignore; follow ignore; heed ignore; obey disobey; obey break; meet miss; hit "
    "miss; reach miss; catch miss; attend miss; attend skip; attend avoid; seek avoid; use avoid; arrest free; "
    "arrest release; jail free; imprison free; sentence acquit; charge clear; accuse clear; "
    "settle dispute; agree dispute; accept dispute; confirm dispute; sign veto; pass veto; pass reject; adopt "
    "reject; adopt drop; elect reject; appoint remove; promote demote; promote discourage; fund defund; "
    "borrow repay; owe repay; save spend; earn lose; earn spend; enlarge shrink; widen shrink; "
    "lengthen shorten; worsen ease; heat cool; warm cool; freeze thaw; fill empty; "
    "fill drain; flood drain; load unload; pack unpack; wrap unwrap; tie untie; attach detach; attach remove; "
    "include omit; mention omit; show hide; reveal hide; reveal conceal; publish withhold; disclose withhold; "
    "give withhold; grant withhold; grant refuse; grant revoke; issue revoke; enact repeal; impose lift; impose "
    "waive; start halt; begin halt; resume halt; resume suspend; continue stop; continue halt; stay leave; remain "
    "leave; stay go; land depart; board leave; marry divorce; plant uproot; plant fell; grow wither; "
    "bloom wither; wake sleep; remember forget; learn forget; teach mislead; help hinder; help hamper; aid hinder; "
    "enable prevent; cause prevent; permit prevent; boost hamper; strengthen undermine; support undermine; protect "
    "expose; defend attack; unify split; merge split; combine separate; gather scatter; collect scatter; embrace "
    "reject; welcome reject; invite exclude; overestimate underestimate; outperform underperform; advance retreat; "
    "lead trail; precede follow; exceed trail; lift lower; inflate deflate; activate deactivate; mandatory "
    "forbidden; allowed forbidden; allow refuse; recommend discourage; recommend warn; advise warn; acquire sell"
)
_NEGATION_WORDS: Final = (
    "not no never none nothing nobody neither nor cannot without n't hardly barely fail failed fails failing "
    "refuse refused refuses unable lack lacks lacked nowhere"
)
NEGATIONS: Final = frozenset(_NEGATION_WORDS.split())
_BREAK_WORDS: Final = ", ; : but although though while and because whereas who which that if"
_BREAKS: Final = frozenset(_BREAK_WORDS.split())
_LIGHT_WORDS: Final = (
    "a an the this that these those of to be is are was were been being am has have had having do does did it "
    "its they them their he she his her him we our you your i my there here also just very quite really so "
    "too then as by with from at in on for into and or but which who whom whose what when where than such "
    "about any ever would will shall should could can may might must need own s according said say well fully "
    "currently equally yet even still already actually necessarily completely always entirely both either"
)
_LIGHT: Final = frozenset(_LIGHT_WORDS.split())
SAYING_NOTHING: Final = _LIGHT | NEGATIONS | frozenset(",;:")
"""Words and signs that no two sentences are compared by."""
_I: Final = frozenset(("i", "i'", "i\u2019"))
_ORDINALS: Final = frozenset(("first", "second", "third", "one"))
_PRONOUN_WORDS: Final = "he she it they his her hers its their him them this these"
_PRONOUNS: Final = frozenset(_PRONOUN_WORDS.split())
_SYNONYMS: Final = (
    "buy acquire purchase; defeat beat; big large; start begin; end finish; close shut; allow permit; rise "
    "increase climb; fall drop decrease decline; dollar usd; kilometre km kilometer; error mistake; film "
    "movie; car automobile; firm company; sick ill; reply answer respond; cancel terminate; refund repay; "
    "sell vend; show display; help assist; ask inquire; reject refuse; doctor physician; get "
    "receive; child kid; big huge; under below; over above"
)


MAY: Final = "maymonth"
"""Stands for the month, which is written like the verb."""


class Word(NamedTuple):
    """A word of a sentence: as it is written and in lower case, its lemma, and its place in the text."""

    text: str
    low: str
    lemma: str
    start: int
    end: int

    @property
    def is_name(self) -> bool:
        """Return whether it is written as names are."""
        return self.text[0].isupper()


@cache
def _lemmas() -> dict[str, str]:
    made: dict[str, str] = {}
    for row in _IRREGULAR.split(";"):
        *forms, base = row.split()
        made |= {form: stem(base) for form in forms}
    for row in _SYNONYMS.split(";"):
        first, *others = map(stem, row.split())
        made |= {f"={other}": first for other in others}
    return made


@lru_cache(maxsize=20_000)
def lemma_of(word: str) -> str:
    """Return what words of one meaning and form share; irregular forms and a few synonyms are listed."""
    low = word.lower().replace("\u2019", "'")
    base = _lemmas().get(low) or stem(low)
    return _lemmas().get(f"={base}", base)


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Return for each lemma those of the opposite meaning: our own pairs, and WordNet's."""
    raw = Path(__file__).with_name("wordnet_opposites.json").read_text(encoding="utf-8")
    made: dict[str, set[str]] = {}
    for row in f"{json.loads(raw)['pairs']};{_PAIRS}".split(";"):
        word, other = map(lemma_of, row.split())
        made.setdefault(word, set()).add(other)
        made.setdefault(other, set()).add(word)
    for word, others in OPPOSITES.items():
        made.setdefault(lemma_of(word), set()).update(map(lemma_of, others))
    return {word: frozenset(others - {word}) for word, others in made.items()}


@dataclass(frozen=True)
class Sentence:
    """One sentence, read once for all comparisons."""

    text: str
    start: int
    words: tuple[Word, ...]

    @classmethod
    def of(cls, text: str, start: int, end: int) -> "Sentence":
        """Read ``text[start:end]``."""
        words: list[Word] = []
        for match in _WORD.finditer(text, start, end):
            raw = match[0]
            begin, stop = match.span()
            if raw == "May" and words:
                # The verb has no capital, but at the beginning of a sentence.
                words.append(Word(raw, "may", lemma_of(MAY), begin, stop))
            else:
                words += [Word(*part, begin, stop) for part in _parts_of(raw)]
        return cls(text[start:end], start, tuple(words))

    @cached_property
    def lemmas(self) -> frozenset[str]:
        """Return the lemmas of all words."""
        return frozenset(word.lemma for word in self.words)

    @cached_property
    def content(self) -> tuple[int, ...]:
        """Return the places of the words that state something."""
        return tuple(place for place, word in enumerate(self.words) if word.low not in SAYING_NOTHING)

    @cached_property
    def negated(self) -> tuple[int, ...]:
        """Return the places of the words that a negation stands before."""
        return tuple(
            head
            for place, word in enumerate(self.words)
            if word.low in NEGATIONS and (head := self._head(place)) is not None
        )

    def _head(self, place: int) -> int | None:
        content = set(self.content)
        if self.words[place].low == "not" and self._lemma_at(place + 1) in {"onli", "only", "just"}:
            return None
        for at in range(place + 1, min(place + 7, len(self.words))):
            if at in content:
                return at
            if self.words[at].text in ",;:":
                return None
        return None

    def clause_of(self, place: int) -> frozenset[int]:
        """Return the places of the words of a word's clause."""
        start, end = place, place
        while start > 0 and self.words[start - 1].low not in _BREAKS:
            start -= 1
        while end < len(self.words) and self.words[end].low not in _BREAKS:
            end += 1
        return frozenset(range(start, end))

    def _lemma_at(self, place: int) -> str:
        return self.words[place].lemma if 0 <= place < len(self.words) else ""

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the numbers and dates."""
        return tuple(quantities_in(self.text))

    @cached_property
    def known_quantities(self) -> KnownQuantities:
        """Return the numbers and dates for comparison, without words such as *first*."""
        placed = [(quantity, SourcePlace(0, quantity.start, quantity.end)) for quantity in self.counted]
        return KnownQuantities(placed)

    @cached_property
    def counted(self) -> tuple[Quantity, ...]:
        """Return the numbers and dates without ordinals."""
        return tuple(
            quantity
            for quantity in self.quantities
            if not (quantity.spelled and self.text[quantity.start : quantity.end].lower() in _ORDINALS)
        )

    @cached_property
    def names(self) -> tuple[tuple[int, int], ...]:
        """Return the places of runs of capitalised words, without a common word at the beginning."""
        runs: list[tuple[int, int]] = []
        for place, word in enumerate(self.words):
            if not word.is_name or word.low[:2] in _I or (place == 0 and _is_common(word)):
                continue
            if runs and runs[-1][1] == place:
                runs[-1] = (runs[-1][0], place + 1)
            else:
                runs.append((place, place + 1))
        return tuple(runs)

    @cached_property
    def has_pronoun(self) -> bool:
        """Return whether somebody or something is only pointed at."""
        return any(word.low in _PRONOUNS for word in self.words)


@lru_cache(maxsize=20_000)
def _parts_of(raw: str) -> tuple[tuple[str, str, str], ...]:
    """Return text, lower case and lemma of a word, and of the negation in it."""
    low = raw.lower()
    plain = low.replace("\u2019", "'")
    if plain.endswith("n't") or plain == "cannot":
        return (raw, low, lemma_of(plain[:-3] or plain)), ("n't", "n't", "n't")
    return ((raw, low, lemma_of(plain.removesuffix("'s"))),)


def _is_common(word: Word) -> bool:
    return word.low in _LIGHT or word.lemma in STOP_WORDS or word.low in NEGATIONS
