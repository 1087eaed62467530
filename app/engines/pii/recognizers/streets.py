# ruff: noqa: E501, RUF001 - each pattern is on one line, with the punctuation that texts use
"""Patterns of street addresses of the north and the east of Europe, of Turkey, Indonesia and Vietnam, in any case."""

from typing import Final

_WORD: Final = r"[^\W\d_][\w.'’\-]{1,24}"
_CAPITAL: Final = r"(?-i:[A-ZÅÄÖÆØÁČĎÉĚÍŇÓŘŠŤÚŮÝŽĄĆĘŁŃŚŹŻŐŰÂÎȘȚÇĞİŞÜ])[\w.'’\-]{1,24}"
_TOWN: Final = rf"{_WORD}(?:[ \-]{_WORD})?(?<![.'’\-])"
_BREAK: Final = r"(?:,\s?|\s)"
_DOOR: Final = r"(?:\s?(?-i:[A-Ha-h])(?!\w))?(?:\s(?-i:[A-D])?\s?\d{1,3}(?![\w.]))?(?:,\s(?:lgh|leil|as|bost|st|\d{1,2}\.)\.?\s?(?:\d{1,4}|tv|th|mf|sal)?\.?)?"
_CODE: Final = r"(?:(?:s|n|no|dk|fi|fin|is)-)?(?:\d{3}\s\d{2}|\d{4,5})"
_NORTH: Final = rf"(?:{_BREAK}{_CODE}\s{_TOWN}(?:\s(?-i:N|NV|NØ|S|SV|SØ|V|Ø|C|K)(?!\w))?)"
_KINDS: Final = r"gatan|gata|gaten|vägen|väg|veien|vegen|vei|vejen|vej|gränd|torget|allén|alléen|pladsen|plads|plassen|(?<!bri)(?<!rene)gade|(?<!bri)gaden|stræde|strædet|boulevarden|katu|kuja|polku|raitti|puistikko|puistotie"
_CAPITAL_KINDS: Final = r"gate|veg|tie|torg|allé|alle|plass|backen|stigen|stien|kroken|svingen|bakken|kaari|ranta|rinne|bulevardi|esplanadi|stígur|vegur"
_ROADS: Final = r"(?!(?:valta|kanta|maan|yhdys|moottori|riks|läns|europa|fylkes|motor|hoved|land|järn|jern|genveje?)(?:tie|väg|vägen|veg|vegen|vei|veien|vej|vejen)(?!\w))"
"""Roads with a number are no addresses."""

NORTHERN: Final = (
    (rf"(?<![\w.]){_ROADS}[^\W\d_][\w'’\-]{{1,28}}(?:{_KINDS})\s\d{{1,3}}(?![\w%:]|[.,]\d){_DOOR}{_NORTH}?", 0.65),
    (rf"(?<![\w.]){_ROADS}[^\W\d_][\w'’\-]{{1,28}}(?:{_KINDS})\s\d{{1,3}}\s?(?-i:[A-Ha-h])(?!\w){_DOOR}{_NORTH}?", 0.65),
    (rf"(?<![\w.]){_ROADS}{_CAPITAL}(?:{_CAPITAL_KINDS})\s\d{{1,3}}(?![\w%:]|[.,]\d){_DOOR}{_NORTH}?", 0.6),
    (rf"(?<![\w.])[^\W\d_][\w'’\-]{{1,28}}(?:{_CAPITAL_KINDS})\s\d{{1,3}}{_DOOR}{_NORTH}", 0.65),
    (rf"(?<![\w.])(?:{_CAPITAL}\s){{1,3}}(?:gate|gata|gatan|väg|vei|veg|vej|plads|plass|allé|torg|katu|tie)\s\d{{1,3}}(?![\w%:]|[.,]\d){_DOOR}{_NORTH}?", 0.65),
)  # fmt: skip

_NUMBER: Final = r"\d{1,4}(?:\s?/\s?\d{1,4})?(?-i:[A-Da-d](?!\w))?(?![\w%]|\.\d)"
_NAMES: Final = rf"{_WORD}(?:\s{_WORD}){{0,3}}"
_CAPITALS: Final = rf"{_CAPITAL}(?:\s{_WORD}){{0,2}}"
_BLOCKS: Final = r"(?:,?\s?(?:bl|sc|et|ap)\.?\s?\w{1,5}){0,4}"
_POLISH: Final = rf"(?:\sm\.?\s?\d{{1,4}})?(?:{_BREAK}\d{{2}}-\d{{3}}\s{_TOWN})?"
_HUNGARIAN: Final = r"(?:utca|utcája|út|útja|tér|tere|körút|köz|sétány|rakpart|sor|u\.|krt\.)"

EASTERN: Final = (
    (rf"(?<![\w.]){_CAPITALS}\s{_NUMBER},\s\d{{3}}\s\d{{2}}\s{_TOWN}(?:\s\d{{1,2}}(?![\w.,]))?", 0.65),
    (rf"(?<!\w)(?:ul\.\s?{_NAMES}|(?:al|pl|os)\.\s?(?:(?-i:[A-ZĄĆĘŁŃÓŚŹŻ])(?-i:[a-ząćęłńóśźż]){{2,24}}\s?){{1,3}}(?<!\s))\s{_NUMBER}{_POLISH}", 0.65),
    (rf"(?<!\w)(?:str\.|strada|bd\.|b-dul|bulevardul|calea|[sș]os\.|[sș]oseaua|aleea|pia[tț]a|splaiul)\s{_NAMES},?\snr\.?\s?{_NUMBER}{_BLOCKS}(?:,\s{_CAPITAL})?", 0.7),
    (rf"(?<!\w)(?:\d{{4}}\s{_TOWN},?\s)?(?!kr\.|i\.)(?-i:{_CAPITAL})(?:\s{_WORD}){{0,2}}\s{_HUNGARIAN}\s\d{{1,3}}(?:\s?[\-/]\s?\w{{1,4}})?\.?(?![\w%])(?:{_BREAK}\d{{4}}\s{_TOWN})?", 0.65),
    (rf"(?<!\w)\d{{4}}\s{_TOWN},\s{_NAMES}\s{_HUNGARIAN}\s\d{{1,3}}(?![\w%])", 0.65),
    (rf"(?<![\w.])(?:{_CAPITAL}\s(?:mah\.|mahallesi),?\s)?{_CAPITALS}\s(?:cad\.|caddesi|sok\.|soka[kğ]ı?|bulvarı|blv\.),?\s(?:no\s?[:.]?\s?)?{_NUMBER}(?:,?\s?d(?:aire)?\s?[:.]?\s?\d{{1,3}})?(?:,?\s(?:\d{{5}}\s)?{_CAPITAL}(?:[,/ ]{{1,3}}{_CAPITAL})?)?", 0.7),
    (rf"(?<!\w)(?:jl\.?|jln\.?|jalan|gg\.|gang)\s{_CAPITALS}\s(?:no\.?\s?)?{_NUMBER}(?:,\s{_CAPITAL}(?:\s{_CAPITAL})?)?(?:\s\d{{5}}(?!\w))?", 0.65),
    (rf"(?<!\w)(?:số\s)?\d{{1,4}}(?:/\d{{1,4}})?(?-i:[A-D])?,?\s(?:đường|phố|đ\.|ngõ|hẻm)\s{_CAPITAL}(?:\s{_CAPITAL}){{0,3}}(?:,\s(?:phường|quận|p\.|q\.|tp\.|huyện)\s?\w{{1,12}}(?:\s{_CAPITAL}){{0,3}}){{0,3}}", 0.7),
    (rf"(?<!\w)(?:via|viale|corso|piazza|vicolo)\s{_NAMES},?\s{_NUMBER}{_BREAK}\d{{5}}\s{_TOWN}", 0.65),
)  # fmt: skip
