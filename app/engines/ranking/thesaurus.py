"""Map words of requests and words in names of tools to the same concept where they mean the same."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from app.engines.ranking.words import terms

_GROUPS: Final = """
find search lookup look locate query retrieve fetch discover browse
get show list display view read give tell provide
create add make new insert generate build compose write draft
update edit modify change adjust revise rename set
delete remove erase drop clear discard
cancel abort revoke withdraw
send deliver dispatch forward notify
book reserve reservation booking order
buy purchase shop checkout cart
pay payment transfer remit wire
schedule plan appointment calendar meeting event agenda invite
email mail inbox mailbox gmail outlook
message chat sms text dm slack
document doc note file page wiki notion paper memo
folder directory drive storage
calculate compute calculator arithmetic math evaluate multiply divide sum
convert conversion exchange transform
translate translation language interpreter
summarize summary digest abstract tldr
analyze analysis examine inspect evaluate assess
compare comparison versus difference
predict forecast estimate projection
weather temperature rain climate sunny
stock share ticker equity nasdaq
crypto bitcoin ethereum coin token
price cost fee rate quote
flight airline plane airport fly
hotel accommodation lodging room stay airbnb
restaurant dining dinner eat food cuisine meal
recipe cook dish ingredient
map route direction navigate navigation distance
car vehicle automobile
movie film cinema
music song playlist track album artist
video youtube clip
image picture photo photograph illustration drawing
news headline article
job career vacancy employment resume cv
person contact people profile employee
customer client lead crm
issue bug ticket defect
task todo reminder
code repository repo git commit github
branch merge pull
database sql table
website url web site link
user account login member
password credential secret
health medical doctor symptom diagnosis
exercise workout fitness gym
course lesson learn tutorial study
game play match
sport team league player
legal law court lawsuit
tax vat invoice receipt
loan mortgage credit
server host machine instance
deploy release rollout
log trace error exception
test check verify validate
download export save
upload import attach
spreadsheet sheet excel csv
presentation slide powerpoint deck
"""
"""One group a line; a word may be in several. Written by us, after common names of tools."""


@lru_cache(maxsize=1)
def _concepts() -> Mapping[str, tuple[str, ...]]:
    concepts_by_word: dict[str, tuple[str, ...]] = {}
    for group in _GROUPS.strip().splitlines():
        for word in terms(group):
            concepts_by_word[word] = (*concepts_by_word.get(word, ()), f"~{group.split(maxsplit=1)[0]}")
    return concepts_by_word


def concepts(words: Iterable[str]) -> list[str]:
    """Return the concepts of ``words`` (stems), each once; their names begin with ~, so that no word equals one."""
    concepts_by_word = _concepts()
    return list(dict.fromkeys(concept for word in words for concept in concepts_by_word.get(word, ())))
