# ruff: noqa: E501, RUF001 - each pattern is on one line, with the punctuation that texts use
"""Recognize street addresses by a number and a word for street, boxes, post codes after a cue, coordinates."""

from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers.cues import CuedRecognizer, cued
from app.engines.pii.recognizers.patterns import ExactPatterns
from app.engines.pii.recognizers.streets import EASTERN, NORTHERN

_LETTER = "A-ZÀ-ÖØ-Þ"
_NAME = rf"[{_LETTER}][\w'’.\-]{{0,24}}"
_TOWN = (
    rf"(?-i:(?:Saint|St\.?|San|Los|Las|New|Le|La|Den|Bad|Sankt)?\s?{_NAME}"
    rf"(?:\s(?:de[lr]?|la|am|an|der|sur|upon|do|di|{_NAME})){{0,3}}(?<![.'’\-]))"
)
_STATE = (
    r"(?-i:A[LKSZR]|C[AOT]|D[EC]|F[LM]|G[AU]|HI|I[ADLN]|K[SY]|LA|M[ADEHINOPST]|N[CDEHJMVY]|O[HKR]|P[AWR]|RI|S[CD]|T[NX]|UT|V[AIT]"
    r"|W[AIVY]|Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|Illinois"
    r"|Indiana|Iowa|Kansas|Kentucky|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Mississippi|Missouri|Montana"
    r"|Nebraska|Nevada|New\sHampshire|New\sJersey|New\sMexico|New\sYork|North\sCarolina|North\sDakota|Ohio|Oklahoma|Oregon"
    r"|Pennsylvania|Rhode\sIsland|South\sCarolina|South\sDakota|Tennessee|Texas|Utah|Vermont|Virginia|Washington"
    r"|West\sVirginia|Wisconsin|Wyoming)"
)
_PROVINCE = r"(?-i:AB|BC|MB|N[BLSTU]|ON|PE|QC|SK|YT|NSW|VIC|QLD|WA|SA|TAS|ACT)"
_ZIP = r"\d{5}(?:-\d{4})?"
_UK_CODE = r"(?-i:[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2})"
_CA_CODE = r"(?-i:[A-Z]\d[A-Z]\s?\d[A-Z]\d)"
_BREAK = r"(?:,\s{0,2}|\s{1,2}|\s{0,2}[\-–|·]\s{1,2}|\\n)"
_COUNTRY = rf"(?:{_BREAK}(?-i:USA|U\.S\.A\.|United\sStates|UK|United\sKingdom|England|Canada|Australia|Germany|Deutschland|France|Italia|España|India))?"
_UNIT = (
    r"(?:,?\s{1,2}(?:apt|apartment|suite|ste|unit|flat|floor|fl|room|rm|bldg|building|lot|trlr|spc|#|p\.?o\.?\sbox)\.?\s?#?\s?"
    r"(?=[A-Z]{0,2}\d|[A-Z](?!\w))[\w\-]{1,6}|,?\s#\s?\d[\w\-]{0,5}|,\s\d{1,2}(?:st|nd|rd|th)\sfloor)?"
)
_TAIL = (
    rf"(?:{_BREAK}{_TOWN}{_BREAK}(?:{_STATE}{_BREAK}{_ZIP}|{_STATE}(?!\w)|{_PROVINCE}{_BREAK}(?:{_CA_CODE}|\d{{4}})|{_UK_CODE})"
    rf"|{_BREAK}(?:{_ZIP}(?![\w.])|{_UK_CODE}|{_STATE}{_BREAK}{_ZIP}|{_TOWN}{_BREAK}\d{{5,6}}(?![\w.])))?{_COUNTRY}"
)
_STRONG = r"Street|St|Str|Avenue|Ave|Av|Boulevard|Blvd|Road|Rd|Highway|Hwy|Parkway|Pkwy|Terrace|Ter|Crescent|Cres|Expressway|Turnpike"
_WEAK = (
    r"Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Way|Circle|Cir|Square|Sq|Trail|Trl|Close|Gardens|Gdns|Grove|Mews|Row|Walk|Hill|Alley"
    r"|Loop|Plaza|Park|Path|Pike|Run|Rise|Green|Quay|Wharf|Parade|Esplanade|Ridge|Crossing|Bend|Nagar|Marg|Colony|Vihar|Layout"
)
_NOT_A_NAME = r"(?!(?:Supreme|District|Hard|High|Superior|Federal|Appeals?|Circuit|Flash|Disk|Google|One|Two|Test|Full|Half|The)\s(?:Court|Drive|Way))"
_HOUSE = r"(?<![\w.,$€£#/:\-])\d{1,5}(?:\s?[\-/]\s?\d{1,4})?(?-i:[A-Da-d])?(?:\s1/2)?,?"
_HEADING = r"(?:(?-i:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.?\s)?"
_NAMES = rf"(?-i:{_NOT_A_NAME}(?:(?:{_NAME}|\d{{1,3}}(?:st|nd|rd|th)|of|the|de|la)\s){{0,3}}(?:{_NAME}|\d{{1,3}}(?:st|nd|rd|th)))"
_KIND_END = r"(?![\w])\.?(?:\s(?-i:N|S|E|W|NE|NW|SE|SW|North|South|East|West)(?!\w)\.?)?"
_LOW = r"[a-z][a-z'’.\-]{1,20}(?:\s[a-z0-9][a-z0-9'’.\-]{0,20}){0,2}"
_ENGLISH = (
    (rf"{_HOUSE}\s{_HEADING}{_NAMES}\s(?-i:{_STRONG}){_KIND_END}{_UNIT}{_TAIL}", 0.75),
    (rf"{_HOUSE}\s{_HEADING}{_NAMES}\s(?-i:{_WEAK}){_KIND_END}(?!\s(?:failed|failure|handshake|tests?|cases?|settings?|changes?|games?|capacity)){_UNIT}{_TAIL}", 0.65),
    (rf"{_HOUSE}\s{_HEADING}(?:(?-i:The\s(?=Strand)))?(?-i:Broadway|Kingsway|Strand|Piccadilly|Whitehall){_KIND_END}{_UNIT}{_TAIL}", 0.65),
    (rf"(?<![\w.,$\-])\d{{2,5}}\s(?:[nsew]\.?\s)?{_LOW}\s(?:street|avenue|ave|boulevard|blvd|road|st|rd|lane|drive|dr)\.?(?:,\s|\s){_LOW},?\s(?:{_STATE}|[a-z]{{2}}),?\s{_ZIP}(?!\w)", 0.65),
    (rf"(?<![\w.,$\-])\d{{2,5}}\s{_LOW}\s(?:street|avenue|boulevard|blvd)(?!\w)", 0.55),
    (rf"(?<![\w.,$\-])\d{{1,5}}[a-d]?\s{_LOW}\s(?:street|avenue|ave|road|st|rd|lane|drive|close|terrace|gardens|place|court|way)(?:,\s|\s)(?:{_LOW},?\s)?[a-z]{{1,2}}\d[a-z\d]?\s?\d[a-z]{{2}}(?!\w)", 0.65),
    (rf"(?<!\w){_TOWN},\s{_STATE},?\s{_ZIP}(?![\w\-])", 0.65),
    (rf"(?<!\w)(?:p\.?\s?o\.?\s?box|post\soffice\sbox|postfach|apartado(?:\sde\scorreos|\spostal)?|casella\spostale|caixa\spostal|postbus)\s{{1,2}}#?\d{{1,6}}(?!\w){_TAIL}", 0.7),
    (r"(?<!\w)(?-i:Apartment|Apt|Flat|Suite)\.?\s?#?(?=\w{0,2}\d)[\w\-]{1,5}(?![\w\-])", 0.5),
)  # fmt: skip
_GERMAN_CODE = rf"(?:{_BREAK}(?:D-|A-|CH-)?\d{{4,5}}\s{_TOWN})?"
_GERMANIC = (
    (rf"(?<![\w.])(?-i:[A-ZÄÖÜ][\wäöüß.\-]{{1,30}}(?:\s[A-ZÄÖÜ][\wäöüß.\-]{{1,20}}){{0,2}}?)(?:straße|strasse|str\.|weg|platz|allee|gasse|ufer|damm|chaussee|steig|stieg|pfad)\s\d{{1,4}}(?:\s?[a-f](?!\w))?(?:\s?[-/]\s?\d{{1,4}})?(?![\w%])(?!\.\d){_GERMAN_CODE}", 0.7),
    (rf"(?<![\w.])(?-i:(?:[A-ZÄÖÜ][\wäöüß.]{{1,30}}[\s\-]){{1,3}}(?:Straße|Strasse|Str\.|Weg|Platz|Allee|Gasse|Ring|Ufer|Damm|Chaussee))\s\d{{1,4}}(?:\s?[a-f](?!\w))?(?![\w%])(?!\.\d){_GERMAN_CODE}", 0.65),
    (rf"(?<![\w.])(?-i:(?:Am|An\sder|An\sden|Auf\sder|Auf\sdem|Im|In\sder|Zum|Zur|Unter\sden|Hinter\sder|Alter|Neuer)\s[A-ZÄÖÜ][\wäöüß\-]{{2,30}})\s\d{{1,4}}(?:\s?[a-f](?!\w))?(?![\w%.])(?:{_BREAK}(?:D-|A-|CH-)?\d{{4,5}}\s{_TOWN})", 0.6),
    (rf"(?<![\w.])(?-i:[A-Z][\w'\-]{{1,30}}(?:\s[A-Z][\w'\-]{{1,20}}){{0,2}}?)(?:straat|gracht|laan|kade|singel|dijk|plein|hof|steeg|burgwal|dreef)\s\d{{1,4}}(?:\s?[a-f](?!\w)|-\d{{1,4}}|-[A-Z0-9]{{1,4}}|\s?bis)?(?![\w%])(?!\.\d)(?:{_BREAK}(?:NL-)?\d{{4}}\s?(?-i:[A-Z]{{2}})(?!\w)(?:{_BREAK}{_TOWN})?)?", 0.65),
    (rf"(?<![\w.])(?-i:[A-Z][\w'\-]{{2,30}})weg\s\d{{1,4}}{_BREAK}\d{{4}}\s?(?-i:[A-Z]{{2}})(?!\w)(?:{_BREAK}{_TOWN})?", 0.65),
)  # fmt: skip
_OF = r"(?:(?:de\sl[ao]s?|del?|d[aou]s?|du|des|la|le|les|los|las|dell[ao]|dei|degli|delle|di|du|e|y|della)\s|(?:de\s)?l['’]|d['’]|dell['’])"
_ROMANCE_NAME = rf"{_OF}{{0,2}}(?-i:{_NAME}(?:\s{_OF}?{_NAME}){{0,4}})"
_DOOR = r"(?:n[º°.]{1,2}\s?|nr\.?\s?|número\s)?\d{1,5}(?:\s?(?:bis|ter|/\s?[A-Z0-9]{1,3}))?(?-i:[A-Za-d](?!\w))?(?![\w%])(?!\.\d)"
_FIVE = rf"(?:(?:{_BREAK}(?:\d{{1,2}}[º°ª]\s?[\w]{{0,3}}|piso\s\d{{1,2}}|apto?\.?\s\d{{1,4}}|int\.?\s\d{{1,3}}))?{_BREAK}(?:[FEIP]-)?\d{{4,5}}(?:-\d{{3}})?\s{_TOWN}(?:\s\([A-Z]{{2}}\))?)?"
_BRAZIL = rf"(?:{_BREAK}{_TOWN}(?:\s?[-–/,]\s?(?-i:[A-Z]{{2}}))?(?:{_BREAK}(?:CEP:?\s)?\d{{5}}-\d{{3}})?)"
_ROMANCE = (
    (rf"(?<![\w.,\-])\d{{1,4}}(?:\s?(?:bis|ter|quater))?,?\s(?:rue|avenue|av\.|ave|boulevard|bd\.?|blvd|place|chemin|allées?|impasse|quai|cours|route|square|passage|faubourg|rond-point)\s{_ROMANCE_NAME}{_FIVE}", 0.7),
    (rf"(?<!\w)(?-i:Calle|C/|C\.|Avenida|Avda\.?|Av\.|Paseo|Pº|Plaza|Pza\.?|Carrer|Ronda|Camino|Carretera|Glorieta|Travesía|Rua|R\.|Travessa|Praça|Alameda|Rodovia|Estrada|Largo|Via|Viale|V\.le|Corso|C\.so|Piazza|P\.zza|Piazzale|Vicolo|Strada|Lungotevere|Lungarno)\s?{_ROMANCE_NAME},?\s{_DOOR}(?:{_FIVE}|{_BRAZIL}|\s-\s{_TOWN}{_BRAZIL})", 0.7),
    (rf"(?<!\w)(?-i:Calle|C/|Avenida|Avda\.?|Paseo|Plaza|Carrer|Rua|Travessa|Praça|Alameda|Via|Viale|Corso|Piazza|Piazzale|Vicolo)\s?{_ROMANCE_NAME},?\s{_DOOR}", 0.6),
)  # fmt: skip
_ASIAN = (
    (rf"(?<![\w.,\-])\d{{1,3}}-\d{{1,3}}(?:-\d{{1,4}})?,?\s(?-i:[A-Z][\w\-]{{2,20}}(?:,?\s[A-Z][\w\-]{{2,20}}){{0,3}})-(?:ku|shi|cho|chome|machi|gun)(?:{_BREAK}{_TOWN})?(?:,?\s〒?\d{{3}}-\d{{4}})?", 0.65),
    (r"〒\s?\d{3}-\d{4}(?:\s{0,2}[\u4e00-\u9fff][\u3040-\u30ff\u4e00-\u9fff0-9０-９\-−丁目番地号]{3,30})?", 0.75),
    (r"[\u4e00-\u9fff]{1,3}[都道府県][\u3040-\u30ff\u4e00-\u9fff]{1,12}[市区町村郡][\u3040-\u30ff\u4e00-\u9fff]{0,12}[0-9０-９]{1,3}(?:[\-−丁目番地号]{1,2}[0-9０-９]{1,3}){0,3}[号番]?", 0.65),
    (r"(?<!\w)(?:(?-i:Flat|House|H\.?[ \n\u00a0]?No\.?|Plot|Door\sNo\.?|Shop)\.?\s(?:No\.?\s)?[\w/\-]{1,8}),?\s(?-i:[A-Z][\w'.\-]{1,20}(?:,?\s[A-Z0-9][\w'.\-]{0,20}){0,6}),?\s(?:-\s)?\d{3}\s?\d{3}(?!\w)", 0.6),
)  # fmt: skip
_POST_CODE_CUES = (
    *(
        "zip ?(?:\\+ ?4|4|code)?",
        "zip(?:code)?",
        "post(?:al)? ?code",
        "plz",
        "postleitzahl",
        "code postal",
        "código postal",
        "codice postale",
    ),
    *(
        "(?-i:CAP)",
        "cep",
        "pin ?code",
        "(?-i:PIN)",
        "postnummer",
        "postcode",
        "eircode",
        "cod postal",
        "c\\.?p\\.?",
    ),
)
_POST_CODE = (
    r"\d{5}(?:-\d{3,4})?|\d{4}\s?(?-i:[A-Z]{2})|[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}|[A-Z]\d[A-Z]\s?\d[A-Z]\d|\d{3}-\d{4}|\d{2}-\d{3}"
    r"|\d{3}\s\d{2,3}|\d{6}|[1-9]\d{3}|[A-Z]\d{2}\s?[A-Z0-9]{4}"
)
_AFTER_TOWN = r"(?-i:(?<=[a-z],\s|[a-z]\s)[A-PR-UWYZ][A-HK-Y]?\d[A-Z\d]?\s\d[ABD-HJLNP-UW-Z]{2}(?!\w))"
"""A British post code after a lower-case letter, so that it is not part of a code."""
_DEGREE = r"\d{1,3}\s?[°º]\s?(?:\d{1,2}(?:\.\d{1,6})?\s?['′’]\s?(?:\d{1,2}(?:\.\d{1,6})?\s?(?:[\"″”]|''|\\\")\s?)?)?"
_DECIMAL = r"[+\-−]?\d{1,3}\.\d{2,15}"
_PAIR = rf"\(?{_DECIMAL}°?\s?[NS]?\s?[,;/ ]\s?{_DECIMAL}(?:°?\s?[EWO](?!\w))?\)?"
_FULL_PRECISION = (
    r"(?<![\w.+\-])(?<!\d,)(?<!\d, )(?<!\d )(?=[+\-]?\d\d|[+\-]?\d\.\d{1,10},\s?[+\-]?\d\d)[+\-]?(?:90|[1-8]?\d)\.\d{5,8}"
    r",\s?[+\-]?(?:180|1[0-7]\d|[1-9]?\d)\.\d{5,8}(?![\w.]|,\s?[+\-]?\d|\s[+\-]?\d)"
)


def address_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    return [
        StreetAddressRecognizer(),
        CuedRecognizer(
            "PostCodeRecognizer",
            "POSTAL_CODE",
            [
                (cued(_POST_CODE_CUES, _POST_CODE), 0.6),
                (cued(("pincode",), r"\d{3}\s?\d{3}"), 0.8),
                (_AFTER_TOWN, 0.5),
            ],
        ),
        CoordinatesRecognizer(),
    ]


class StreetAddressRecognizer(ExactPatterns):
    """Find street addresses of two dozen countries: a number, names, a word for street, then the town."""

    def __init__(self) -> None:
        super().__init__("STREET_ADDRESS", [*_ENGLISH, *_GERMANIC, *_ROMANCE, *_ASIAN, *NORTHERN, *EASTERN])


class CoordinatesRecognizer(CuedRecognizer):
    """Find coordinates: with degrees and compass points, after a cue, or as two numbers of full precision."""

    def __init__(self) -> None:
        pair = (
            "coord(?:inate)?s?",
            "gps(?: coordinates| location| position| fix)?",
            "geo(?: ?location| ?point|code)?",
            "location",
            "position",
        )
        more = (
            "lat ?(?:/|,)? ?lo?ng?",
            "latlng",
            "latlon",
            "koordinaten",
            "coordonnées",
            "coordenadas",
            "coordinate",
            "standort",
            "posizione",
        )
        single = (
            "lat(?:itude)?",
            "lo?ng(?:itude)?",
            "lon",
            "breitengrad",
            "längengrad",
            "latitud",
            "longitud",
            "latitudine",
            "longitudine",
        )
        super().__init__(
            "CoordinatesRecognizer",
            "COORDINATES",
            [
                (rf"(?<![\w.]){_DEGREE}[NS](?!\w)[,;/ ]{{0,3}}{_DEGREE}[EWO](?!\w)", 0.8),
                (
                    r"(?<![\w.])\d{1,2}\.\d{2,10}\s?°?\s?(?-i:[NS])(?!\w)[,;/ ]{1,3}\d{1,3}\.\d{2,10}\s?°?\s?(?-i:[EWO])(?!\w)",
                    0.8,
                ),
                (cued((*pair, *more), _PAIR), 0.7),
                (cued(single, r"[+\-−]?\d{1,3}\.\d{3,15}°?(?:\s?(?-i:[NSEWO])(?!\w))?"), 0.6),
                (_FULL_PRECISION, 0.5),
            ],
        )
