# ruff: noqa: PLR2004 - every number is one of a published check
"""Published checks of European VAT numbers by prefix; each takes the compact upper-case text after the prefix."""

from collections.abc import Callable
from typing import Final

from app.engines.pii.recognizers.checksums import europe
from app.engines.pii.recognizers.checksums.shared import is_luhn, is_mod_11_10, weighted

_TEN = 10


def _at(text: str) -> bool:
    doubled = sum(sum(divmod(int(d) * (1 + place % 2), 10)) for place, d in enumerate(text[1:8]))
    return (6 - doubled) % 10 == int(text[8])


def _be(text: str) -> bool:
    return text[:2] >= "01" and 97 - int(text[:8]) % 97 == int(text[8:])


def _bg(text: str) -> bool:
    if len(text) == _TEN:
        foreigner = weighted(text[:9], (21, 19, 17, 13, 11, 9, 7, 3, 1)) % 10
        other = -weighted(text[:9], (4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
        return europe.bg_egn(text) or int(text[9]) in {foreigner, other}
    check = weighted(text[:8], (1, 2, 3, 4, 5, 6, 7, 8)) % 11
    if check == _TEN:
        check = weighted(text[:8], (3, 4, 5, 6, 7, 8, 9, 10)) % 11 % 10
    return check == int(text[8])


def _cz(text: str) -> bool:
    if len(text) == 9 and text[0] == "6":
        rest = weighted(text[1:8], (8, 7, 6, 5, 4, 3, 2)) % 11
        return (8 - (_TEN - rest) % 11) % 10 == int(text[8])
    if len(text) > 8:
        return europe.cz_rodne_cislo(text)
    check = (11 - weighted(text[:7], (8, 7, 6, 5, 4, 3, 2))) % 11
    return (check or 1) % 10 == int(text[7])


def _dk(text: str) -> bool:
    return weighted(text, (2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _ee(text: str) -> bool:
    return weighted(text, (3, 7, 1, 3, 7, 1, 3, 7, 1)) % 10 == 0


def _es(text: str) -> bool:
    return europe.es_cif(text) if text[0] in "ABCDEFGHJNPQRSUVW" else europe.es_nif(text)


def _fi(text: str) -> bool:
    return weighted(text, (7, 9, 10, 5, 8, 4, 2, 1)) % 11 == 0


def _fr(text: str) -> bool:
    if not is_luhn(text[2:]) and text[2:5] != "000":
        return False
    return not text[:2].isdigit() or (int(text[2:]) * 100 + 12) % 97 == int(text[:2])


def _gb(text: str) -> bool:
    rest = weighted(text[:9], (8, 7, 6, 5, 4, 3, 2, 10, 1)) % 97
    return rest == 0 or (rest in {42, 55} and text[:3] >= "100")


def _hu(text: str) -> bool:
    return weighted(text, (9, 7, 3, 1)) % 10 == 0


def _ie(text: str) -> bool:
    if text[:7].isdigit():
        return europe.ie_ppsn(text)
    return europe.ie_ppsn("0" + text[2:7] + text[0] + text[7:])


def _lt(text: str) -> bool:
    body = text[:-1]
    check = sum(int(d) * (1 + place % 9) for place, d in enumerate(body)) % 11
    if check == _TEN:
        check = sum(int(d) * (1 + (place + 2) % 9) for place, d in enumerate(body)) % 11 % 10
    return text[-2] == "1" and check == int(text[-1])


def _lu(text: str) -> bool:
    return int(text[:6]) % 89 == int(text[6:])


def _lv(text: str) -> bool:
    if text[0] <= "3":
        return europe.lv_personas_kods(text)
    return weighted(text, (9, 1, 4, 8, 3, 10, 2, 5, 7, 6, 1)) % 11 == 3


def _mt(text: str) -> bool:
    return weighted(text, (3, 4, 6, 7, 8, 9, 10, 1)) % 37 == 0


def _nl(text: str) -> bool:
    if text[10:] == "00":
        return False
    if europe.nl_bsn(text[:9]):
        return True
    spelled = "".join(str(int(character, 36)) for character in f"NL{text}")
    return int(spelled) % 97 == 1


def _ro(text: str) -> bool:
    padded = text.zfill(10)
    return weighted(padded[:9], (7, 5, 3, 2, 1, 7, 5, 3, 2)) * 10 % 11 % 10 == int(padded[9])


def _se(text: str) -> bool:
    return text[10:] == "01" and is_luhn(text[:10])


def _sk(text: str) -> bool:
    return int(text) % 11 == 0


def _che(text: str) -> bool:
    return -weighted(text[:8], (5, 4, 3, 2, 7, 6, 5, 4)) % 11 == int(text[8])


def _no(text: str) -> bool:
    return weighted(text[:9], (3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


VAT_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "AT": _at,
    "BE": _be,
    "BG": _bg,
    "CY": europe.cy_tic,
    "CZ": _cz,
    "DE": is_mod_11_10,
    "DK": _dk,
    "EE": _ee,
    "EL": europe.gr_afm,
    "ES": _es,
    "FI": _fi,
    "FR": _fr,
    "GB": _gb,
    "HR": is_mod_11_10,
    "HU": _hu,
    "IE": _ie,
    "IT": is_luhn,
    "LT": _lt,
    "LU": _lu,
    "LV": _lv,
    "MT": _mt,
    "NL": _nl,
    "NO": _no,
    "PL": europe.pl_nip,
    "PT": europe.pt_nif,
    "RO": _ro,
    "SE": _se,
    "SI": europe.si_tax,
    "SK": _sk,
    "XI": _gb,
}
"""The check for each prefix; Swiss numbers begin with CHE and have a separate check."""


def is_vat(text: str) -> bool:
    """Return whether ``text``, a VAT number with its prefix, passes the check of its country."""
    if text.startswith("CHE"):
        return _che(text[3:12])
    body = text[2:].removesuffix("MVA") if text.startswith("NO") else text[2:]
    return VAT_CHECKS[text[:2]](body)
