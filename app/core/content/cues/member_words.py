# ruff: noqa: E501 - the names of one kind on as few lines as may be
"""List names of members that programs write and nobody says: abbreviations, and words in other letters than their own.

They count as names of members only. In a text most of them would mean something else.
"""

import re
from typing import Final

_NAMES: Final[dict[str, str]] = {
    "date of birth": "ddn, fecha nac, fec nac, f nac, dt nasc, data nasc, geburts datum, geb dat, geb datum, geb tag, ne le, nee le, "
    "shengri, chusheng riqi, seinengappi, tanjobi, tanjoubi, saengnyeonworil, saengil, data rozhdeniya, data rozhdenia",
    "ssn": "ss num, ss no, ss nr, ss number, soc sec no, soc sec num",
    "nino": "ni number, ni num, ni no, national insurance, national insurance no, national insurance number",
    "tax id": "fein, numero fiscal, num fiscal, steuer idnr, idnr, numero spi",
    "numero securite sociale": "num secu, no secu, numero secu",
    "sozialversicherungsnummer": "sv nummer, sv nr, rv nummer, rv nr",
    "driving licence number": "dl no, dl num, dl nr, dl number, num permis, no permis, menkyo bango, menkyo bangou, menkyosho bango",
    "bank account number": "konto nr, konto num, nr konta, numer konta, nr rachunku, numer rachunku, koza bango, kouza bangou, "
    "yinhang zhanghao, nomer scheta, acct num, acct nbr",
    "card number": "karten nummer, karten nr, kredit karten nr, carte bancaire, numero carte, num carte, numero carta, num carta, "
    "numero cartao, num cartao, tarjeta, numero tarjeta, num tarjeta, nomer karty, nr karty, yinhangka, yinhangka hao, "
    "xinyongka hao, kado bango, kaado bangou",
    "cvv": "codigo seguridad, cod seguridad, codigo seguranca, cod seguranca, codice sicurezza, cod sicurezza, kartenpruef nummer",
    "pin": "ansho bango, anshou bangou",
    "verification code": "mfa code",
    "patient number": "fall nummer, fall nr, dossier patient, numero dossier patient, historia clinica, num historia, nro historia, "
    "prontuario, numero utente, num utente",
    "prescription number": "rx number, rx no, rx num",
    "customer number": "num client, no client, numero client, nr klienta, num cliente, nro cliente, numero adherent, num adherent",
    "member id": "loyalty card, loyalty card no, loyalty card number, loyalty no, loyalty number",
    "employee number": "num empleado, nro empleado, legajo, matricula funcionario, matricula empleado, matricule employe",
    "postal code": "codigo postal, cod postal, yubin bango, yuubin bangou, youbian, youzheng bianma",
    "phone number": "nr telefonu, nr tel, numer telefonu, nomer telefona, movil, telemovel, denwa, denwa bango, denwa bangou, keitai, "
    "keitai bango, keitai bangou, shouji, shouji hao, shouji haoma, dianhua, dianhua haoma, lianxi dianhua, hyudaepon, jeonhwa, "
    "jeonhwa beonho, sdt",
    "national id": "carte identite, carta identita, documento identidad, numero documento, num documento, nro documento, "
    "shenfenzheng, shenfenzheng hao, shenfenzheng haoma, nik, no nik, kojin bango, kojin bangou, my number, jumin no, jumin number, "
    "jumin beonho, jumin deungnok beonho, titulo eleitor, numer dowodu, nr dowodu, numer dowodu osobistego, nr dowodu osobistego",
    "passport number": "huzhao, huzhao hao, hu zhao hao, huzhao haoma, ryoken bango, ryoken bangou, paspoort nummer, seriya pasporta",
    "home address": "jusho, juusho, dizhi",
    "password": "mima, mdp, parola chiave, parol",
    "full name": "nome completo, xingming, shimei, namae",
}
"""Names in small letters without accents by the English words for them; a blank may be missing."""

_ENGLISH: Final = {
    name.replace(" ", ""): english for english, names in _NAMES.items() for name in names.split(", ")
}
_PARTS: Final = sorted(
    {name for names in _NAMES.values() for name in names.split(", ")}, key=len, reverse=True
)
_NAME: Final = re.compile(rf"\b(?:{'|'.join(name.replace(' ', ' ?') for name in _PARTS)})\b")


def spelled_out(name: str) -> str:
    """Return ``name``, words in small letters without accents, with English words for those that only programs write."""
    return _NAME.sub(lambda part: _ENGLISH[part[0].replace(" ", "")], name)
