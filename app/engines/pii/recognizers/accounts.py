# ruff: noqa: RUF001 - cues are spelled as in texts
"""Recognize numbers that organizations assign to people, user names and passwords; each only after a cue."""

import re
from typing import Any

from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers.cues import LETTERED, NUMBER, CuedRecognizer, cued

_SURE, _LIKELY = 0.75, 0.6

_CUSTOMER = (
    "customer",
    "client",
    "consumer",
    "account",
    "acct",
    "loyalty",
    "frequent flyer",
    "subscriber account",
)
_CUSTOMER_WORDS = (
    *("kundennummer", "kundennr", "kunden nr", "kunden id", "numéro (?:de )?client", "numéro d['’]abonné"),
    *(
        "número de cliente",
        "nº de cliente",
        "id de cliente",
        "codice cliente",
        "numero cliente",
        "código do cliente",
    ),
    *("número do cliente", "klantnummer", "klant id", "client n[°º]"),
)
_EMPLOYEE = (
    "employee",
    "emp",
    "staff",
    "personnel",
    "payroll",
    "worker",
    "badge",
    "associate",
    "hr",
    "clock",
    "officer",
)
_EMPLOYEE_WORDS = (
    *(
        "personalnummer",
        "mitarbeiternummer",
        "mitarbeiter id",
        "personal nr",
        "matricule",
        "numéro (?:de )?matricule",
    ),
    *(
        "número de empleado",
        "id de empleado",
        "matricola",
        "numero (?:di )?matricola",
        "número de funcionário",
    ),
    *("personeelsnummer", "medewerkernummer"),
)
_STUDENT = ("student", "pupil", "enrol?lment", "matriculation", "learner", "alumni", "candidate")
_STUDENT_WORDS = (
    *(
        "matrikelnummer",
        "matrikel nr",
        "numéro (?:d['’])?étudiant",
        "número de estudiante",
        "número de alumno",
    ),
    *("matricola studente", "número de aluno", "studentnummer"),
)
_POLICY = ("policy", "insurance policy", "policy ?holder", "insurance contract", "contract")
_POLICY_WORDS = (
    *(
        "versicherungsnummer",
        "versicherungsschein(?:nummer)?",
        "policennummer",
        "vertragsnummer",
        "numéro de police",
    ),
    *(
        "police n[°º]",
        "numéro de contrat",
        "número de póliza",
        "póliza (?:número|n[°º]|no)",
        "numero (?:di )?polizza",
    ),
    *("polizza n[.°º]", "número da apólice", "apólice", "polisnummer"),
)
_CLAIM = ("claim", "insurance claim", "case", "incident claim", "loss claim")
_CLAIM_WORDS = (
    *(
        "schaden ?nummer",
        "schadens? ?nr",
        "numéro de sinistre",
        "número de siniestro",
        "numero (?:di )?sinistro",
    ),
    *("número do sinistro", "schadenummer"),
)
_USER = (
    *(
        "user ?name",
        "user ?id",
        "login ?(?:name|id)?",
        "log ?on ?(?:name|id)",
        "screen ?name",
        "account ?name",
        "nick ?name",
    ),
    *(
        "benutzer ?name",
        "benutzer ?kennung",
        "anmelde ?name",
        "nutzer ?name",
        "nom d['’]?(?: )?utilisateur",
        "identifiant",
    ),
    *(
        "nombre de usuario",
        "usuario",
        "nome utente",
        "nome de usuário",
        "usuário",
        "gebruikers ?naam",
        "(?:twitter|x) handle",
    ),
    *(
        "instagram",
        "telegram",
        "skype",
        "discord",
        "slack",
        "github user",
        "logged in as",
        "signed in as",
        "user",
    ),
)
_NO_NAME = (
    r"(?!(?:self|this|os|get\w{0,20}|req|request|res|args|config|options|user|users|ctx|context|settings|process|params|data|form"
    r"|db|str|string|none|null|true|false|admin|root|test|required|optional|text|email|name|username|default|settings"
    r"|session|current\w{0,20}|(?:my|new|old|user)_\w{1,20}|\w{1,20}_(?:name|id|user)|not|the|is|must|in|on|and|or|with|for|is"
    r"|undefined|varchar|char|int|integer|password|example)(?![\w@-]))(?!\w{1,32}\.(?:get|name|user|id|com|org|net|py|js|md))"
)
_HANDLE = rf"@?{_NO_NAME}[A-Z](?:[\w]|[.\-](?=\w)){{2,31}}(?![\w(\[]|\.\w|@)"
_WITH_DIGIT = rf"(?=@?[A-Z._\-]{{1,24}}\d){_HANDLE}|\d{{5,12}}"
_PARTED = rf"(?=@?[A-Z]{{1,20}}[._\-][A-Z]){_HANDLE}"
_FORM_OF_USER = (
    r"(?<![\w.\-])(?:user ?name|login(?: name)?|user ?id|benutzername|nom d['’]utilisateur|identifiant|usuario"
    r"|nombre de usuario|nome utente|nome de usuário|gebruikersnaam)"
)
_PASSWORD = (
    *(
        "pass ?words?",
        "pass ?wort",
        "kenn ?wort",
        "pass ?code",
        "pass ?phrase",
        "passwd",
        "pwd",
        "pw(?!-)",
        "pass",
        "contraseña",
    ),
    *(
        "clave(?: de acceso)?",
        "mot de passe",
        "senha",
        "wacht ?woord",
        "parola d['’]ordine",
        "palavra ?passe",
    ),
    *("login credentials", "new password", "temp password"),
)
_SECRECY = (
    r"(?![A-Z_]\w{0,40}(?:\.[A-Z_]\w{0,40}){1,6}(?![\w!@#$%^&*+?]))(?![$%]?[(\x7b\[])(?=[^\s\"'<>,;)\]\x7d|]{0,40}[\d!@#$%^&*+?~])"
    r"(?=[^\s\"'<>,;)\]\x7d|]{0,40}(?:[A-Z]|\d{5}))(?![\w.]{1,60}[(\[\x7b])[^\s\"'<>,;()\[\]\x7b\x7d|]{5,64}(?<![.?:=])"
)
_SECRET_CUE, _SPECIAL = (
    r"(?<![\w.\-])(?:pass ?word|passwort|kennwort|contraseña|mot de passe|senha|wachtwoord)",
    r"(?=\S{0,40}\d)(?=\S{0,40}[!@#$%^&*+?~])",
)
_LOGGED_IN = r"(?:accepted (?:password|publickey) for|session (?:opened|closed) for user)"
_PIN = (
    *(
        "pin",
        "pin ?code",
        "pin ?number",
        "personal identification number",
        "geheimzahl",
        "geheimnummer",
        "otp",
    ),
    *(
        "one ?time (?:code|password|pin|passcode)",
        "verification code",
        "access (?:code|pin)",
        "pass ?code",
        "authentication code",
    ),
    *(
        "bestätigungs ?code",
        "code pin",
        "código pin",
        "código de verificación",
        "codice pin",
        "door code",
        "2fa code",
    ),
    *("sms code", "login code", "security pin", "pin nummer"),
)

_END_OF_SSN = (
    *(
        "ssn last ?(?:4|four)(?: digits)?",
        "last ?(?:4|four) ssn",
        "ssn ?(?:4|end(?:ing)?|suffix)",
        "ssn ending in",
    ),
    *("last ?(?:4|four)(?: digits)?(?: of)?(?: the)?(?: ssn| social security number)",),
    *("social security(?: number)? last ?(?:4|four)(?: digits)?", "social security number ending(?: in)?"),
)
"""Names of the last four digits of a social security number, with which US institutions identify people."""

_NUMBERED = (
    (
        "CustomerNumberRecognizer",
        "CUSTOMER_ID",
        _CUSTOMER,
        _CUSTOMER_WORDS,
        ("customer", "client", "kunde", "cliente", "klant"),
        "CUST|CUS|CLIENT",
    ),
    (
        "EmployeeNumberRecognizer",
        "EMPLOYEE_ID",
        _EMPLOYEE,
        _EMPLOYEE_WORDS,
        ("employee", "staff member", "mitarbeiter(?:in)?", "empleado"),
        "EMP|EMPL|STAFF",
    ),
    ("StudentNumberRecognizer", "STUDENT_ID", _STUDENT, _STUDENT_WORDS, ("student",), "STU|STUD"),
    (
        "PolicyNumberRecognizer",
        "POLICY_NUMBER",
        _POLICY,
        _POLICY_WORDS,
        ("policy", "police", "póliza", "polizza", "apólice", "polis"),
        "POL",
    ),
    (
        "ClaimNumberRecognizer",
        "CLAIM_NUMBER",
        _CLAIM,
        _CLAIM_WORDS,
        ("claim", "insurance claim", "sinistre", "siniestro", "sinistro"),
        "CLM|CLAIM",
    ),
)
"""Numbers of people and contracts: recognizer, type, nouns, whole cues, cues that need no noun, initials."""


def account_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    return [
        *(
            CuedRecognizer(
                name,
                entity,
                [
                    (cued(nouns, NUMBER, noun=True), _LIKELY),
                    (cued(whole, NUMBER), _LIKELY),
                    (cued(alone, LETTERED), _LIKELY),
                    (rf"(?<![\w\-.])(?P<value>(?-i:{initials})[\-#]?\d{{4,10}})(?![\w\-])", _LIKELY),
                ],
            )
            for name, entity, nouns, whole, alone, initials in _NUMBERED
        ),
        CuedRecognizer("SsnEndRecognizer", "US_SSN", [(cued(_END_OF_SSN, r"\d{4}"), _SURE)]),
        CuedRecognizer("PinRecognizer", "PIN", [(cued(_PIN, r"\d{4,8}"), _SURE)]),
        UserNameRecognizer(),
        PasswordRecognizer(),
    ]


_KEY = re.compile(r"[\"'`]\s?:")
"""What follows the key of an object, as in JSON."""


class UserNameRecognizer(CuedRecognizer):
    """Find user names: with a digit after any cue, without a digit only if the text is not code."""

    needs_digit = False

    def __init__(self) -> None:
        quoted = rf"(?<=[\"'`]){_HANDLE}(?=[\"'`])"
        super().__init__(
            "UserNameRecognizer",
            "USERNAME",
            [
                (cued(_USER, _WITH_DIGIT), _LIKELY),
                (cued(_USER, quoted, firm=True), _LIKELY),
                (cued(_USER, _PARTED), _LIKELY),
                (
                    rf"{_FORM_OF_USER}\s?:[ \t]{{1,3}}(?P<value>{_HANDLE})(?=[ \t]{{0,3}}(?:$|[;\r\n]|,\s(?-i:[A-Z])))",
                    _LIKELY,
                ),
                (rf"(?<![\w.])user(?:name)?=(?P<value>{_HANDLE})(?=[ \t]\w{{1,20}}=)", _LIKELY),
                (rf"\d - (?P<value>{_HANDLE}) (?=\[\d\d/)", _LIKELY),
                (
                    rf"{_LOGGED_IN} (?P<value>{_HANDLE})(?=\s|\()",
                    _LIKELY,
                ),
            ],
        )

    def _add(self, results: list[Any], match: Any, pattern: Any) -> None:
        before = match.string[match.start() : match.start("value")]
        if _KEY.match(match.string, match.end("value")):
            return
        if "=" in before and not any(mark in before or mark in match["value"] for mark in "\"'0123456789"):
            after = match.string[match.end("value") :][:1]
            if before.endswith(" ") or (after and after not in " \t&;"):
                return  # an assignment or a keyword argument in code
        super()._add(results, match, pattern)


class PasswordRecognizer(CuedRecognizer):
    """Find passwords after a cue; the finding is only the value, and only if it looks like a password."""

    needs_digit = False

    def __init__(self) -> None:
        here = r"[^\s\"'<>,;)\]\x7d|]{0,40}"
        typical = rf"(?={here}\d)(?={here}[!@#$%^&*+?~])(?!\S{{1,60}}\()(?:{_SECRECY})"
        super().__init__(
            "PasswordRecognizer",
            "PASSWORD",
            [
                (cued(_PASSWORD, _SECRECY, firm=True), _LIKELY),
                (cued(_PASSWORD, typical), _LIKELY),
                (
                    rf"{_SECRET_CUE}\s?:[ \t]{{1,3}}(?P<value>{_SPECIAL}[^\s\"'<>]{{6,40}})(?=\s{{0,3}}$)",
                    _LIKELY,
                ),
            ],
        )
